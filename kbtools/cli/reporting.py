"""What `verify` and `check` leave for programs: files, annotations, the summary of a step."""

from __future__ import annotations

import datetime
import os
import re
import secrets
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
import msgspec

from kbtools.cli.errors import ReportError
from kbtools.config import Config, KbtoolsError

if TYPE_CHECKING:
    from kbtools.articles.model import Article, Problem
    from kbtools.verification.model import Result, ToolchainRun

REPORTS = ("--json", "--junit", "--sarif", "--prometheus")
"""Options whose FILE may be left out."""
NO_FILE = re.compile(r"--.*|-\w+|[A-Za-z]+\d+(?:/\w+)?|.*\.md")
"""What is none: another option, an id, a snippet, the path of an article."""

F = TypeVar("F", bound=Callable[..., Any])

SARIF = click.option(
    "--sarif",
    "sarif_file",
    metavar="[FILE]",
    help="Write SARIF to FILE; without it, to standard output.",
)
GITHUB = click.option(
    "--github/--no-github",
    default=lambda: os.environ.get("GITHUB_ACTIONS") == "true",
    help="Print annotations for GitHub Actions. [default: if GITHUB_ACTIONS is true]",
)


class ReportingCommand(click.Command):
    """A command with reports: `--json` alone is `--json -`, as it is of commands with one report.

    A file that is called as an article is `--json=KB0044`.
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parses the arguments, with `-` where the FILE of a report is left out."""
        end = args.index("--") if "--" in args else len(args)
        following = [*args[1:end], "--"][:end]
        words = [
            f"{word}=-" if word in REPORTS and _is_no_file(after) else word
            for word, after in zip(args[:end], following, strict=True)
        ]
        return super().parse_args(ctx, [*words, *args[end:]])


def _is_no_file(word: str) -> bool:
    """Whether a word is no file, but an option or an article."""
    return NO_FILE.fullmatch(word) is not None


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
            metavar="[FILE]",
            help="Write metrics for Prometheus to FILE, in one step; without it, to standard"
            " output.",
        ),
        SARIF,
        click.option(
            "--junit",
            "junit_file",
            metavar="[FILE]",
            help="Write JUnit XML to FILE; without it, to standard output.",
        ),
        click.option(
            "--json",
            "json_file",
            metavar="[FILE]",
            help="Write JSON to FILE; without it, to standard output.",
        ),
    ):
        command = option(command)
    return command


class ReportOptions(msgspec.Struct, frozen=True):
    """What a command is asked to report, and where. A FILE of `-` is standard output."""

    json_file: str | None = None
    junit_file: str | None = None
    sarif_file: str | None = None
    prometheus_file: str | None = None
    summary_file: str | None = None
    github: bool = False

    @property
    def is_stdout_taken(self) -> bool:
        """Whether standard output is for a program, so that people read standard error.

        Raises:
            click.UsageError: it is for two of them.
        """
        files = (self.json_file, self.junit_file, self.sarif_file, self.prometheus_file)
        if files.count("-") > 1:
            raise click.UsageError("standard output holds one report; give the others a FILE")
        return "-" in files


def write(
    runs: Sequence[ToolchainRun],
    articles: Iterable[Article],
    config: Config,
    options: ReportOptions,
) -> None:
    """Writes every file that was asked for.

    Args:
        runs: What is reported.
        articles: All that can be read: the metrics count those that were not run, too.
        config: Of the knowledge base.
        options: Which reports, and where.

    Raises:
        ReportError: a file could not be written; the others are.
    """
    from kbtools.reports import github, junit, machine, sarif
    from kbtools.reports.places import in_checkout

    prefix, troubles = in_checkout(config), []

    def metrics() -> bytes:
        from kbtools.reports.prometheus import as_prometheus  # takes 0.1 s to import

        return as_prometheus(runs, articles, config, datetime.datetime.now(datetime.UTC))

    reports: tuple[tuple[str | None, Callable[[], bytes], bool], ...] = (
        (options.json_file, lambda: machine.as_json(runs), False),
        (options.junit_file, lambda: junit.as_junit(runs, prefix), False),
        (options.sarif_file, lambda: sarif.of_runs(runs, prefix), False),
        # a collector of metrics may read the file at any moment
        (options.prometheus_file, metrics, True),
    )
    for file, printer, at_once in reports:
        try:
            if file:
                write_report(file, printer(), at_once=at_once)
        except KbtoolsError as error:
            troubles.append(str(error))
    in_github = os.environ.get("GITHUB_STEP_SUMMARY") if options.github else None
    if step := options.summary_file or in_github:
        try:
            with Path(step).open("a", encoding="utf-8") as stream:
                stream.write(github.summary(runs, config, source() and source() + prefix))
        except OSError as error:
            troubles.append(f"cannot write {step}: {error}")
    if options.github:
        emit(github.of_runs(runs, prefix), options.is_stdout_taken)
    if troubles:
        raise ReportError("\n".join(troubles))


def source() -> str:
    """Where GitHub shows the files of the commit that a workflow runs on; empty elsewhere."""
    names = ("GITHUB_SERVER_URL", "GITHUB_REPOSITORY", "GITHUB_SHA")
    server, repository, commit = (os.environ.get(name, "") for name in names)
    return f"{server}/{repository}/blob/{commit}/" if server and repository and commit else ""


def write_report(file: str, content: bytes, *, at_once: bool = False) -> None:
    """Writes a report.

    Args:
        file: Its path, or `-` for standard output.
        content: The report.
        at_once: Put the whole file in place in one step, as somebody may read it meanwhile.

    Raises:
        ReportError: it could not be written.
    """
    from kbtools.files import write_whole

    if file == "-":
        click.echo(content, nl=False)
        return
    try:
        (write_whole if at_once else Path.write_bytes)(Path(file), content)
    except OSError as error:
        raise ReportError(f"cannot write {file}: {error}") from error


def annotate(problems: Sequence[Problem], config: Config, to_stderr: bool) -> None:
    """Prints annotations for what keeps articles from being read.

    Args:
        problems: Each has its file and line.
        config: Says where the knowledge base lies in its repository.
        to_stderr: Whether standard output is a program's.
    """
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


def suggest_toolchain(results: Iterable[Result]) -> None:
    """Says how to use another Python, if packages are missing from the one that runs kbtools.

    Who installed kbtools with pipx or uvx has it in an environment of its own, with nothing else.
    """
    python = shutil.which("python")
    is_other = python is None or Path(python).parent != Path(sys.executable).parent
    if is_other and any(result.verdict.reason.endswith("not installed") for result in results):
        own = '--toolchain "$(command -v python)"'
        click.echo(f"nothing was run on {sys.executable}; to run on your Python: {own}", err=True)
