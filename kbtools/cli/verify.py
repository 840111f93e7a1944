"""The command that runs snippets and judges them."""

from __future__ import annotations

import shlex
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from kbtools.articles.model import Role
from kbtools.cli import reporting
from kbtools.cli.group import config_of, config_to_read, refuse_broken
from kbtools.cli.reporting import ReportingCommand, ReportOptions
from kbtools.cli.selection import Selection, changes_since, part_of, select
from kbtools.cli.verify_options import VerifyOptions
from kbtools.config import Config

if TYPE_CHECKING:
    from kbtools.reports.progress import Progress
    from kbtools.reports.progress_lines import ProgressLines
    from kbtools.toolchains.environments import Environment
    from kbtools.verification.machines import MachinePool
    from kbtools.verification.model import Result, ToolchainRun
    from kbtools.verification.verifier import Verifier


class Verification(msgspec.Struct, frozen=True):
    """What came of a call of `kbtools verify`."""

    runs: tuple[ToolchainRun, ...]
    planned: int
    """Tasks on all toolchains that were begun."""
    interrupted: bool
    """Whether Ctrl-C came."""

    @property
    def results(self) -> list[Result]:
        """The results on all toolchains."""
        return [result for run in self.runs for result in run.results]


@click.command(
    cls=ReportingCommand, short_help="Run snippets and compare the results with the claims."
)
@click.argument("articles", nargs=-1, metavar="[ID|PATH|ID/SNIPPET]...")
@click.option(
    "--jobs",
    "-j",
    type=click.IntRange(1),
    help="Run so many snippets at once. [default: one for each core]",
)
@click.option(
    "--quick",
    is_flag=True,
    help="Run what proves most in little time: snippets recorded in at most 0.1 s, and the quickest"
    " repro and fix of each article. The summary names the command that runs the others.",
)
@click.option(
    "--all", "rerun_remembered", is_flag=True, help="Run snippets whose outcome is remembered, too."
)
@click.option(
    "--role",
    "roles",
    type=click.Choice([str(role) for role in Role]),
    multiple=True,
    help="Run only snippets of this role. May be repeated.",
)
@click.option(
    "--toolchain",
    multiple=True,
    callback=lambda _ctx, _option, names: ",".join(names) or None,
    metavar="NAME|PYTHON,...|all",
    help="Toolchains of toolchains.toml or paths of Python interpreters; `all` takes every one that"
    " is built here. May be repeated. [default: the interpreter that runs kbtools]",
)
@click.option(
    "--isolation",
    type=click.Choice(["fork", "spawn"]),
    default="fork",
    show_default=True,
    help="Fork a warm interpreter for each snippet, or start a new one.",
)
@click.option(
    "--timeout",
    type=click.FloatRange(0, min_open=True),
    metavar="SECONDS",
    help="Time limit of each snippet. [default: as in its fence or in kbtools.toml]",
)
@click.option(
    "--shard",
    metavar="N/OF",
    help="Run only one part of the snippets, as in 2/8. Parts take about the same time, by recorded"
    " seconds, and change little when articles are added.",
)
@click.option(
    "--needs",
    multiple=True,
    metavar="cpu|gpu|gpus:N",
    help="Run only snippets that need such a machine. May be repeated.",
)
@click.option(
    "--changed-since",
    metavar="REF",
    help="Run only articles and toolchains that changed in git since this branch left REF.",
)
@click.option(
    "--on",
    metavar="ray[://ADDRESS]",
    help="Run the snippets on a Ray cluster, as in ray://auto; `ray` starts one on this machine."
    " [default: without Ray]",
)
@click.option("--fail-fast", is_flag=True, help="Stop at the first red verdict.")
@click.option("--record", is_flag=True, help="Write the outcomes to evidence/.")
@click.option(
    "--keep",
    is_flag=True,
    help="Keep the scratch folder of each snippet that is run, in .kbtools/kept/, and print the"
    " command that repeats the run.",
)
@reporting.options
@click.option("--quiet", "-q", is_flag=True, help="Print only the summary.")
@click.option("--verbose", "-v", is_flag=True, help="Name what was skipped, not only count it.")
@click.option("--no-sandbox", is_flag=True, help="Run snippets without the sandbox.")
@click.option(
    "--require-sandbox",
    is_flag=True,
    help="Run nothing, and exit with 2, if the kernel refuses a part of the sandbox.",
)
@click.option(
    "--require-run",
    is_flag=True,
    help="Exit with 1 if nothing of an article could be run, here or in recorded evidence.",
)
@click.pass_context
def verify(ctx: click.Context, /, articles: tuple[str, ...], **values: Any) -> None:
    """Run the snippets of articles and compare the results with the articles' claims.

    An argument is the id or the path of an article, or a single snippet as in KB0002/r1. Without
    arguments, all articles are run; away from a knowledge base there must be one.

    The exit code is 0 if no claim is contradicted, 1 if one is, 2 if an article cannot be read,
    and 3 if nothing could be concluded, for example because every snippet was skipped.
    """
    from kbtools.checks.cached import readable_cached
    from kbtools.packaged import is_around
    from kbtools.reports import text

    report = msgspec.convert(values, ReportOptions)
    options = msgspec.convert({**values, "report": report}, VerifyOptions)
    if not articles and not options.record and not is_around(Path(ctx.obj)):
        raise click.UsageError("no kbtools.toml here or above; name an article: kbtools verify ID")
    config = config_of(ctx) if options.record else config_to_read(ctx)
    machines = machine_pool(config, options)
    base, readable, problems = readable_cached(config)
    selection = select(base, readable, problems, articles)
    selection = msgspec.structs.replace(
        selection,
        roles=options.roles or tuple(Role),
        states=base.states,
        changes=changes_since(options.changed_since, selection.articles, base.config),
        part=part_of(selection.articles, base.config, options.shard, options.needs),
    )
    to_stderr = report.is_stdout_taken  # then what is for people goes to standard error
    with (
        machines as pool,
        reporting.commands_disabled(report.github, to_stderr),
    ):
        verification = verify_selection(pool, selection, base.config, options, articles)
        summarise(verification, options)
    if report.github:
        reporting.annotate(selection.refused, base.config, to_stderr)
    reporting.write(verification.runs, readable, base.config, report)
    if verification.interrupted:
        finished = len(verification.results)
        message = f"interrupted: {finished} of {verification.planned} finished, and kept"
        click.echo(message, err=True)
        sys.exit(130)
    with reporting.commands_disabled(report.github, True):
        refuse_broken(selection.refused)
    code = exit_code(verification, selection)
    asked = options.require_run or not (options.quiet or options.quick)
    if asked and (hollow := hollow_articles(verification.results, config)):
        click.echo(text.hollow(hollow), err=True)
        if options.require_run:
            code = max(code % 3, 1)
    if code == 3 and options.toolchain is None and options.on is None:
        reporting.suggest_toolchain(verification.results)
    sys.exit(code)


def machine_pool(config: Config, options: VerifyOptions) -> MachinePool:
    """The machines that snippets are run on."""
    from kbtools.verification import machines

    if options.on is None:
        # without `--toolchain` there is one to describe, and that takes as long as to load the base
        return machines.ThisMachine(config, describes_own=options.toolchain is None)
    from kbtools.verification.ray import ray_pool

    return ray_pool(config, options.on)


def verify_selection(
    pool: MachinePool,
    selection: Selection,
    config: Config,
    options: VerifyOptions,
    words: Sequence[str],
) -> Verification:
    """Verifies what is selected, on one toolchain after another.

    Args:
        pool: The machines, which have the toolchains.
        selection: What is verified.
        config: Of the knowledge base.
        options: Which toolchains, and how.
        words: The arguments of the call, for the command that runs what `--quick` leaves out.
    """
    from kbtools.evidence.expected import expected_times, recorded_times, wall_seconds
    from kbtools.verification.cached import CachedVerdicts
    from kbtools.verification.model import ToolchainRun
    from kbtools.verification.quick import Tier, first_tier, left_out
    from kbtools.verification.verifier import Verifier

    runs: list[ToolchainRun] = []
    planned, interrupted = 0, False
    headline = config.toolchain.headline
    environments, missing = pool.toolchains(options.toolchain)
    for name in missing:
        click.echo(f"not here: {name}; build it with: kbtools toolchain sync {name}", err=True)
    for environment, folder in zip(environments, kept_folders(config, environments), strict=True):
        toolchain = pool.describe(environment)
        if len(environments) > 1 and not options.quiet:
            heading = f"\n{environment.title}: {toolchain.label(headline)}\n"
            click.echo(heading, err=options.report.is_stdout_taken)
        tasks = [
            msgspec.structs.replace(task, interpreter=environment.word)
            for task in selection.tasks(toolchain, environment.name, config)
        ]
        started = time.monotonic()
        states = {} if options.needs_outcomes else selection.states
        verdicts = CachedVerdicts(config, toolchain, environment.name, options.timeout, states)
        cached, others = verdicts.split(tasks)
        ids = {task.article.id for task in others}
        articles = [article for article in selection.articles if article.id in ids]
        expected = wall_seconds(expected_times(articles, config))
        tier = Tier(tuple(others), ())
        if options.quick and others:
            # by the evidence alone: a day on which this machine is slow changes nothing
            recorded = wall_seconds(recorded_times(selection.articles, config))
            tier = first_tier(tasks, recorded).without(cached)
        engine = partial(pool.engine, environment)
        with Verifier(config, tier.first, options.run_options(folder), engine) as verifier:
            # what an earlier run has shown costs nothing, however slow that run was
            recalled = (*cached, *filter(None, map(verifier.recalled, tier.slower)))
            results, interrupted = verify_tasks(verifier, recalled, expected, options)
            jobs = verifier.engine.capacity.jobs
        verdicts.keep(results[len(cached) :])
        seconds = time.monotonic() - started
        shown = {result.task.snippet.name for result in recalled}
        slower = [task for task in tier.slower if task.snippet.name not in shown]
        left = left_out(slower, expected, jobs, command_of(words, environment.word))
        run = ToolchainRun(environment.title, toolchain, tuple(results), seconds, headline, left)
        runs.append(run)
        planned += len(tier.first) + len(recalled)
        if interrupted or (options.fail_fast and "red" in run.colours):
            break
    return Verification(tuple(runs), planned, interrupted)


def kept_folders(config: Config, environments: Sequence[Environment]) -> Iterator[Path]:
    """For each environment, the folder in which `--keep` leaves the scratch folders of its runs."""
    folder = config.memory.parent / "kept"
    for number, environment in enumerate(environments, 1):
        several = len(environments) > 1
        yield folder / (environment.name or f"toolchain-{number}") if several else folder


def command_of(words: Sequence[str], toolchain: str) -> str:
    """The command that verifies all of what is named; `toolchain` is empty for kbtools' own."""
    options = ["--toolchain", toolchain] if toolchain else []
    return shlex.join(["kbtools", "verify", *words, *options])


def verify_tasks(
    verifier: Verifier,
    recalled: Sequence[Result],
    expected: Mapping[str, float],
    options: VerifyOptions,
) -> tuple[list[Result], bool]:
    """Runs the tasks and prints each result as it comes; the results, and whether Ctrl-C came.

    Args:
        verifier: Has the tasks.
        recalled: Results of other tasks, to be printed first.
        expected: Name of a snippet → the seconds that it should take.
        options: What is printed, and where.
    """
    from kbtools.evidence.verdicts import VerdictName
    from kbtools.reports import text
    from kbtools.reports.forecast import Forecast
    from kbtools.verification.quick import running_times

    stream = sys.stderr if options.report.is_stdout_taken else sys.stdout
    total = len(verifier.tasks) + len(recalled)
    results: list[Result] = []
    with ExitStack() as stack:
        forecast = Forecast(running_times(verifier.tasks, expected), verifier.engine.capacity.jobs)
        progress: Progress | ProgressLines | None = None
        if options.quiet:
            pass
        elif stream.isatty():
            from rich.console import Console

            from kbtools.reports.progress import Progress

            progress = stack.enter_context(Progress(total, forecast, Console(file=stream)))
        else:
            from kbtools.reports.progress_lines import ProgressLines

            emit = partial(click.echo, file=stream)
            progress = ProgressLines(total, forecast, emit, partial(click.echo, err=True))
        try:
            on_start = progress.started if progress else lambda *_: None
            for result in chain(recalled, verifier.verify(on_start)):
                results.append(result)
                if progress:
                    line = text.verdict(result)
                    is_named = options.verbose or result.verdict.name is not VerdictName.SKIPPED
                    progress.finished(result, line if is_named else "")
        except KeyboardInterrupt:
            return results, True
    return results, False


def summarise(verification: Verification, options: VerifyOptions) -> None:
    """Prints what the runs amount to, and what was kept of them."""
    from kbtools.reports import text

    blocks = [text.summary(run, verbose=options.verbose) for run in verification.runs]
    if len(verification.runs) > 1:
        blocks.append(text.table(verification.runs))
    if options.keep:
        blocks.append(text.scratch_folders(verification.results))
    summary = "\n\n".join(blocks)
    to_stderr = options.report.is_stdout_taken
    click.echo(summary if options.quiet else f"\n{summary}", err=to_stderr)


def exit_code(verification: Verification, selection: Selection) -> int:
    """0: no claim is contradicted; 1: one is; 2: an outcome is not written; 3: none concluded."""
    if any(result.trouble for result in verification.results):
        return 2
    if selection.changes is not None and not verification.planned:
        return 0  # the change is no reason to run anything
    colours = {result.verdict.colour for result in verification.results}
    return 1 if "red" in colours else 0 if "green" in colours else 3


def hollow_articles(results: Sequence[Result], config: Config) -> dict[str, str]:
    """Id of an article of which nothing ran, now or in evidence → why not now.

    Args:
        results: Of a whole call.
        config: Of the knowledge base.
    """
    from kbtools.evidence.state import state_of

    concluded = {r.task.article.id for r in results if r.verdict.colour in ("green", "red")}
    others = {r.task.article.id: r for r in results if r.task.article.id not in concluded}
    return {
        name: f"{result.verdict.name}: {result.verdict.reason}"
        for name, result in sorted(others.items())
        if state_of(result.task.article, config).word == "not run"
    }
