"""What `verify` and `check` leave for programs: files, annotations, the summary of a step."""

from __future__ import annotations

import datetime
import os
import secrets
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from kbtools.config import Config, KbtoolsError

if TYPE_CHECKING:
    from kbtools.articles.model import Article, Problem
    from kbtools.verification.verifier import ToolchainRun

F = TypeVar("F", bound=Callable[..., Any])

SARIF = click.option("--sarif", "sarif_file", metavar="FILE", help="Write SARIF to FILE, or to - .")
GITHUB = click.option(
    "--github/--no-github",
    default=lambda: os.environ.get("GITHUB_ACTIONS") == "true",
    help="Print annotations for GitHub Actions. [default: where GITHUB_ACTIONS is true]",
)
FILES = ("json_file", "junit_file", "sarif_file", "prometheus_file")


def options(command: F) -> F:
    """The options of a command that reports on runs."""
    for option in (
        click.option(
            "--summary",
            "summary_file",
            metavar="FILE",
            help="Append a summary in Markdown to FILE."
            " [default with --github: GITHUB_STEP_SUMMARY]",
        ),
        GITHUB,
        click.option(
            "--prometheus",
            "prometheus_file",
            metavar="FILE",
            help="Write metrics for Prometheus to FILE, whole, or to - .",
        ),
        SARIF,
        click.option(
            "--junit", "junit_file", metavar="FILE", help="Write JUnit XML to FILE, or to - ."
        ),
        click.option("--json", "json_file", metavar="FILE", help="Write JSON to FILE, or to - ."),
    ):
        command = option(command)
    return command


def is_stdout_taken(given: dict[str, Any]) -> bool:
    """Whether standard output is for a program, so that people read standard error.

    Raises:
        click.UsageError: it is for two of them.
    """
    wanted = [name for name in FILES if given.get(name) == "-"]
    if len(wanted) > 1:
        raise click.UsageError("standard output holds one report; give the others a FILE")
    return bool(wanted)


def write(
    runs: Sequence[ToolchainRun], articles: Iterable[Article], config: Config, given: dict[str, Any]
) -> None:
    """Writes every file that was asked for.

    Raises:
        KbtoolsError: one could not be written; the others are.
    """
    from kbtools.reports import github, junit, machine, sarif
    from kbtools.reports.places import in_checkout

    prefix, troubles = in_checkout(config), []

    def metrics() -> bytes:
        from kbtools.reports.prometheus import as_prometheus  # takes 0.1 s to import

        return as_prometheus(runs, articles, config, datetime.datetime.now(datetime.UTC))

    made: tuple[tuple[str, Callable[[], bytes]], ...] = (
        ("json_file", lambda: machine.as_json(runs)),
        ("junit_file", lambda: junit.as_junit(runs, prefix)),
        ("sarif_file", lambda: sarif.of_runs(runs, prefix)),
        ("prometheus_file", metrics),
    )
    for name, printer in made:
        try:
            if given[name]:
                one_file(given[name], printer(), whole=name == "prometheus_file")
        except KbtoolsError as error:
            troubles.append(str(error))
    if step := given["summary_file"] or (given["github"] and os.environ.get("GITHUB_STEP_SUMMARY")):
        try:
            with Path(step).open("a", encoding="utf-8") as stream:
                stream.write(github.summary(runs, config, source() and source() + prefix))
        except OSError as error:
            troubles.append(f"cannot write {step}: {error}")
    if given["github"]:
        emit(github.of_runs(runs, prefix), is_stdout_taken(given))
    if troubles:
        raise KbtoolsError("\n".join(troubles))


def source() -> str:
    """Where GitHub shows the files of the commit that a workflow runs on; empty elsewhere."""
    names = ("GITHUB_SERVER_URL", "GITHUB_REPOSITORY", "GITHUB_SHA")
    server, repository, commit = (os.environ.get(name, "") for name in names)
    return f"{server}/{repository}/blob/{commit}/" if server and repository and commit else ""


def one_file(file: str, content: bytes, whole: bool = False) -> None:
    """Writes a report to a file or to standard output; `whole`: somebody may read it meanwhile.

    Raises:
        KbtoolsError: it could not be written.
    """
    from kbtools.files import write_whole

    if file == "-":
        click.echo(content, nl=False)
        return
    try:
        (write_whole if whole else Path.write_bytes)(Path(file), content)
    except OSError as error:
        raise KbtoolsError(f"cannot write {file}: {error}") from error


def annotate(problems: Sequence[Problem], config: Config, to_stderr: bool) -> None:
    """Prints annotations for what keeps articles from being read."""
    from kbtools.reports import github
    from kbtools.reports.places import in_checkout

    emit(github.of_problems(problems, in_checkout(config)), to_stderr)


def emit(commands: Iterable[str], to_stderr: bool) -> None:
    """Prints workflow commands: GitHub reads them on either stream."""
    for command in commands:
        click.echo(command, err=to_stderr)


@contextmanager
def commands_disabled(github: bool, to_stderr: bool) -> Iterator[None]:
    """Keeps GitHub from taking for a command what a snippet printed and we show."""
    if not github:
        yield
        return
    word = secrets.token_hex(16)
    click.echo(f"::stop-commands::{word}", err=to_stderr)
    try:
        yield
    finally:
        click.echo(f"::{word}::", err=to_stderr)
