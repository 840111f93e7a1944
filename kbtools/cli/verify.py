"""The command that runs snippets and judges them."""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from kbtools.articles.model import Article, Problem, Role
from kbtools.cli import reporting
from kbtools.cli.group import config_of, refuse_broken, selected_path
from kbtools.config import Config, KbtoolsError

if TYPE_CHECKING:
    from kbtools.checks.model import Base
    from kbtools.ci.changed import ChangeScope
    from kbtools.running.executor import Sandbox
    from kbtools.verification.machines import MachinePool
    from kbtools.verification.verifier import Result, ToolchainRun, Verifier


@click.command(short_help="Run snippets and compare the results with the claims.")
@click.argument("articles", nargs=-1, metavar="[ID|PATH|ID/SNIPPET]...")
@click.option(
    "--jobs", "-j", type=click.IntRange(1), help="Snippets at once. [default: as many as cores]"
)
@click.option("--all", "rerun_remembered", is_flag=True, help="Run what is remembered, too.")
@click.option(
    "--role",
    "roles",
    type=click.Choice([str(r) for r in Role]),
    multiple=True,
    help="Only snippets of this role; may be given several times.",
)
@click.option(
    "--toolchain",
    metavar="NAME|PYTHON,...|all",
    help="Toolchains of toolchains.toml, or paths of interpreters; `all` takes every one that is"
    " built here. [default: this one]",
)
@click.option(
    "--isolation",
    type=click.Choice(["fork", "spawn"]),
    default="fork",
    show_default=True,
    help="A fork of a warm interpreter for each snippet, or a new one.",
)
@click.option(
    "--timeout",
    type=click.FloatRange(0, min_open=True),
    metavar="SECONDS",
    help="Instead of what configuration and fences say.",
)
@click.option(
    "--shard",
    metavar="N/OF",
    help="Only this part of the snippets, as in 2/8: balanced by recorded seconds, and stable when"
    " articles are added.",
)
@click.option(
    "--needs",
    multiple=True,
    metavar="cpu|gpu|gpus:N",
    help="Only snippets that need such a machine; may be given several times.",
)
@click.option(
    "--changed-since",
    metavar="REF",
    help="Only articles that changed since this branch left REF, as git tells.",
)
@click.option(
    "--on",
    metavar="ray[://ADDRESS]",
    help="Run the snippets on a Ray cluster instead of here, as in ray://auto; `ray` alone starts"
    " one on this machine.",
)
@click.option("--fail-fast", is_flag=True, help="Stop at the first red verdict.")
@click.option("--record", is_flag=True, help="Write what was seen to evidence/.")
@reporting.options
@click.option("--quiet", "-q", is_flag=True, help="Only the summary.")
@click.option("--no-sandbox", is_flag=True, help="Do not shut snippets in.")
@click.option(
    "--require-sandbox",
    is_flag=True,
    help="Run nothing (exit 2) where the kernel refuses a part of the sandbox.",
)
@click.pass_context
def verify(ctx: click.Context, /, articles: tuple[str, ...], **given: Any) -> None:
    """Runs the snippets of ARTICLES (default: all) and judges them against their claims.

    Exits with 0 when no claim is contradicted, 1 when one is, 2 when an article cannot be read,
    3 when nothing could be concluded.
    """
    from kbtools.checks.base import load_base, readable_articles
    from kbtools.toolchains import declared
    from kbtools.verification.verifier import RunOptions, ToolchainRun, Verifier, plan

    base = load_base(config_of(ctx))
    readable, problems = readable_articles(base)
    chosen, only, refused = select(base, readable, problems, articles)
    changed = changed_since(base, chosen, given["changed_since"])
    mine = part_of(base, chosen, given["shard"], given["needs"])
    roles = [Role(role) for role in given["roles"]] or list(Role)
    options = RunOptions(
        jobs=given["jobs"] or (None if given["on"] else os.cpu_count()),
        rerun_remembered=given["rerun_remembered"],
        record=given["record"],
        spawn=given["isolation"] == "spawn",
        timeout=given["timeout"],
        fail_fast=given["fail_fast"],
        sandbox=sandbox_of(given),
    )
    to_stderr = reporting.is_stdout_taken(given)  # then what is for people goes to standard error
    runs: list[ToolchainRun] = []
    planned, interrupted = 0, False
    with (
        machine_pool(base.config, given["on"]) as pool,
        reporting.commands_disabled(given["github"], to_stderr),
    ):
        toolchains, missing = pool.toolchains(given["toolchain"])
        for name in missing:
            click.echo(f"not here: {name}; build it with: kbtools toolchain sync {name}", err=True)
        headline = base.config.toolchain.headline
        for where in toolchains:
            toolchain = pool.describe(where)
            if len(toolchains) > 1 and not given["quiet"]:
                click.echo(f"\n{where.title}: {toolchain.label(headline)}\n", err=to_stderr)
            own = declared.dedicated_articles(base.config, where.name)
            tasks = [
                task
                for task in plan(chosen, toolchain, where.name, roles)
                if task.snippet.name in only
                or task.article.id in only
                or (not only and (not own or task.article.id in own))
                if mine is None or task.snippet.name in mine
                if changed is None
                or task.article.id in changed.articles
                or where.name in changed.toolchains
            ]
            started = time.monotonic()
            verifier = Verifier(base.config, tasks, options, partial(pool.engine, where))
            results, interrupted = run_all(verifier, given)
            seconds = time.monotonic() - started
            runs.append(ToolchainRun(where.title, toolchain, tuple(results), seconds, headline))
            planned += len(tasks)
            if interrupted or (options.fail_fast and "red" in runs[-1].colours):
                break
        summarise(runs, given)
    if given["github"]:
        reporting.annotate(refused, base.config, to_stderr)
    reporting.write(runs, readable, base.config, given)
    if interrupted:
        finished = sum(len(run.results) for run in runs)
        click.echo(f"interrupted: {finished} of {planned} finished, and kept", err=True)
        sys.exit(130)
    with reporting.commands_disabled(given["github"], True):
        refuse_broken(refused)
    if any(result.trouble for run in runs for result in run.results):
        sys.exit(2)
    if changed is not None and not planned:
        sys.exit(0)  # a change that is no reason to run anything is well
    colours = {colour for run in runs for colour in run.colours}
    sys.exit(1 if "red" in colours else 0 if "green" in colours else 3)


def sandbox_of(given: dict[str, Any]) -> Sandbox:
    """How snippets are to be shut in."""
    if given["no_sandbox"] and given["require_sandbox"]:
        raise click.UsageError("--no-sandbox or --require-sandbox, not both")
    if given["no_sandbox"]:
        return "none"
    return "required" if given["require_sandbox"] else "where allowed"


def select(
    base: Base, readable: Sequence[Article], problems: Sequence[Problem], words: Sequence[str]
) -> tuple[list[Article], set[str], list[Problem]]:
    """The articles that words name, what to keep of them, and what cannot be read."""
    if not words:
        return list(readable), set(), list(problems)
    chosen: list[Article] = []
    only: set[str] = set()
    paths: set[str] = set()
    for word in words:
        identifier, slash, snippet = word.partition("/")
        is_snippet = bool(slash) and base.config.id_pattern.fullmatch(identifier)
        path = selected_path(base, identifier if is_snippet else word)
        paths.add(path)
        for one in readable:
            if one.path != path:
                continue
            if is_snippet and snippet not in [s.id for s in one.snippets]:
                there = ", ".join(s.name for s in one.snippets)
                raise KbtoolsError(f"no snippet `{word}`; there are: {there}")
            only.add(word if is_snippet else one.id)
            chosen += [one] if one not in chosen else []
    return chosen, only, [p for p in problems if p.place.path in paths]


def changed_since(base: Base, chosen: Sequence[Article], ref: str | None) -> ChangeScope | None:
    """What `--changed-since` asks for; None where it is not given. Says why, on standard error."""
    from kbtools.ci import changed

    if ref is None:
        return None
    found = changed.changed_since(ref, chosen, base.config)
    for line in found.reasons or (f"no article and no toolchain changed since {ref}",):
        click.echo(line, err=True)
    return found


def part_of(
    base: Base, chosen: Sequence[Article], shard: str | None, needs: Sequence[str]
) -> set[str] | None:
    """The names of the snippets of a shard, of those that need such machines; None for all."""
    from kbtools.ci import jobs, sharding

    for word in needs:
        if not re.fullmatch(r"cpu|gpu|gpus:[2-9]", word):
            raise click.BadParameter(f"`{word}` is not cpu, gpu or gpus:2", param_hint="--needs")
    if shard is None and not needs:
        return None
    snippets = [s for one in chosen for s in one.snippets if not needs or jobs.need(s) in needs]
    try:
        wanted = sharding.parse(shard or "1/1")
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--shard") from error
    return sharding.part(snippets, wanted, sharding.recorded_seconds(chosen, base.config))


def machine_pool(config: Config, on: str | None) -> MachinePool:
    """The machines that snippets are run on."""
    from kbtools.verification import machines

    if on is None:
        return machines.ThisMachine(config)
    from kbtools.verification import ray as ray_engine

    return ray_engine.ray_pool(config, on)


def run_all(verifier: Verifier, given: dict[str, Any]) -> tuple[list[Result], bool]:
    """Runs the tasks and shows them as they end; the results, and whether Ctrl-C came."""
    from contextlib import ExitStack

    from kbtools.reports import text

    stream = sys.stderr if reporting.is_stdout_taken(given) else sys.stdout
    results: list[Result] = []
    with ExitStack() as stack:
        progress = None
        if stream.isatty() and not given["quiet"]:
            from rich.console import Console

            from kbtools.reports.progress import Progress

            progress = stack.enter_context(Progress(len(verifier.tasks), Console(file=stream)))
        try:
            for result in verifier.verify(progress.started if progress else lambda *_: None):
                results.append(result)
                line = text.verdict(result)
                if progress:
                    progress.finished(result, line)
                elif not given["quiet"]:
                    click.echo(line, file=stream)
        except KeyboardInterrupt:
            return results, True
    return results, False


def summarise(runs: Sequence[ToolchainRun], given: dict[str, Any]) -> None:
    """Prints what the runs amount to."""
    from kbtools.reports import text

    blocks = [text.summary(run) for run in runs]
    if len(runs) > 1:
        blocks.append(text.table(runs))
    shown = "\n\n".join(blocks)
    click.echo(shown if given["quiet"] else f"\n{shown}", err=reporting.is_stdout_taken(given))
