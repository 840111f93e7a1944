"""Problems, results and the summary of a run, as text for people."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from click import style

from kbtools.articles.model import Place, Problem, Snippet
from kbtools.articles.placeholders import Placeholder
from kbtools.articles.refereed import ChangedSince
from kbtools.articles.translations import OutdatedTranslation
from kbtools.evidence.verdicts import GREEN, RED, documented_failure
from kbtools.reports.not_run import most_frequent, not_concluded
from kbtools.toolchains.model import Toolchain
from kbtools.verification.model import LeftOut, Result, ToolchainRun

if TYPE_CHECKING:
    from kbtools.matching.matches import Match

COLOURS = {"green": "green", "red": "red", "grey": "yellow"}
MARKS = {"green": "✓", "red": "✗", "grey": "·"}
WIDTH = 110
"""Characters shown of a reason on a snippet's line."""
TAIL = 15
"""Lines of output shown of a red snippet."""


def problem(problem: Problem) -> str:
    """A problem with its line and the next step."""
    where = style(str(problem.place), bold=True)
    lines = [f"{where}: {style(problem.rule, fg='red', bold=True)} {problem.message}"]
    if problem.source.strip():
        lines.append(f"  | {problem.source.strip()}")
    lines.append(f"  {style('help:', fg='cyan')} {problem.help}")
    return "\n".join(lines)


def asks_for_the_network(snippet: Snippet) -> str:
    """A snippet that a reviewer should look at closely, although it breaks no rule."""
    place = Place(snippet.place.path, snippet.place.line - 1)
    return f"{style(str(place), bold=True)}: {snippet.name} asks for the network (net=yes)"


def covered(matches: Sequence[Match], title: str) -> str:
    """The articles whose signatures recognise the title of one that is to be written."""
    lines = ["nothing was written: an article may be about this already"]
    for match in matches:
        lines += [f"{style(match.id, bold=True)}  {match.title}", f"  what helps  {match.summary}"]
    lines += [
        f"read it: kbtools explain {matches[0].id}",
        f"if yours has another cause: kbtools new --anyway -- {shlex.quote(title)}",
    ]
    return "\n".join(lines)


def behind(translation: OutdatedTranslation) -> str:
    """A translation that is to be updated, although it breaks no rule."""
    return (
        f"{style(str(translation.place), bold=True)}: {translation.original} has changed since;"
        f' translate what changed, then write: follows: "{translation.edition}"'
    )


def changed_since_refereed(changed: ChangedSince) -> str:
    """An article that is to be refereed again, although it breaks no rule."""
    return (
        f"{style(str(changed.place), bold=True)}: its words have changed since it was refereed,"
        f" {changed.date}; whoever reads it again: kbtools referee {changed.article} --against TEXT"
    )


def placeholder(placeholder: Placeholder) -> str:
    """A line that is still to be written, although it breaks no rule."""
    return f"{style(str(placeholder.place), bold=True)}: still to be written: {placeholder.text}"


def verdict(result: Result) -> str:
    """One line: the verdict, the snippet, how long it took and why."""
    verdict, snippet = result.verdict, result.task.snippet
    mark = style(f"{MARKS[verdict.colour]} {verdict.name:<14}", fg=COLOURS[verdict.colour])
    duration = "remembered" if result.remembered else _seconds(result)
    return f"{mark} {snippet.name:<12} {snippet.role:<8} {duration:>10}  {_short(verdict.reason)}"


def _short(reason: str) -> str:
    """A reason that fits on a line; the JSON report has all of it."""
    line = " ".join(reason.split())
    return line if len(line) <= WIDTH else line[: WIDTH - 1] + "…"


def _seconds(result: Result) -> str:
    return f"{result.outcome.seconds:.1f} s" if result.outcome else ""


def red(result: Result) -> str:
    """All that is needed to act on a contradicted claim."""
    task, verdict = result.task, result.verdict
    snippet, outcome = task.snippet, result.outcome
    expected = "to run to its end"
    if task.expected.what == "fails":
        expected = f"to fail with {documented_failure(task.article, snippet)}"
    rows = [
        ("claim", task.expected.reason),
        ("expected", expected),
        ("came", outcome.ended if outcome else "nothing"),
        ("verdict", verdict.reason),
    ]
    head = style(f"✗ {verdict.name} {snippet.name} ({snippet.role})", fg="red", bold=True)
    lines = [f"{head}  {style(str(snippet.place), bold=True)}"]
    lines += [f"  {label:<9} {text}" for label, text in rows]
    output = (outcome.output if outcome else "").rstrip().splitlines()
    if output:
        lines.append(f"  {'output':<9} the last {min(TAIL, len(output))} of {len(output)} lines")
        lines += [f"  | {line}" for line in output[-TAIL:]]
    word = task.name or task.interpreter
    where = f" --toolchain {shlex.quote(word)}" if word else ""
    lines.append(f"  {'alone':<9} kbtools verify {snippet.name} --all{where}")
    return "\n".join(lines)


def summary(run: ToolchainRun, *, verbose: bool = False) -> str:
    """The run by verdict, red first, and what it amounts to.

    Args:
        run: On one toolchain.
        verbose: Whether to name the snippets that were skipped, and not only to count them.
    """
    results = sorted(run.results, key=lambda r: (r.task.article.id, r.task.snippet.place.line))
    blocks = [red(result) for result in results if result.verdict.colour == "red"]
    blocks += list(filter(None, ["\n".join(_grey(results, verbose))]))
    blocks += [
        style(f"! {r.task.snippet.name} {r.trouble}", fg="red") for r in results if r.trouble
    ]
    counts = Counter(result.verdict.name for result in results)
    order = [*RED, *(name for name in counts if name not in RED + GREEN), *GREEN]
    totals = [f"{counts[name]} {name}" for name in order if counts[name]]
    number = "1 snippet" if len(results) == 1 else f"{len(results)} snippets"
    line = f"{number} in {run.seconds:.1f} s: {', '.join(totals) or 'none to run'}"
    remembered = sum(result.remembered for result in results)
    if remembered:
        line += f" ({remembered} remembered; --all runs them again)"
    if run.left_out:
        line += f"\n{left_out(run.left_out)}"
    line += f"\non {run.label}"
    if run.unsandboxed:
        line += f"\n{style('not sandboxed', fg='yellow')}: {run.unsandboxed}"
    return "\n\n".join([*blocks, line])


def left_out(left: LeftOut) -> str:
    """How many snippets `--quick` left out, and the command that runs them."""
    minutes = "less than a minute" if left.minutes < 0.75 else f"about {left.minutes:.0f} min"
    return style(f"{left}, {minutes}: {left.command}", fg="yellow")


def hollow(articles: Mapping[str, str]) -> str:
    """The articles that ran nowhere, and what to do; `articles`: id → why it did not run here."""
    head = "nothing of these articles was ever run, so nothing of them is known to be true:"
    lines = (f"  {name}  {why}" for name, why in articles.items())
    step = (
        "help: install what they need, or run them where it is with --record, and commit evidence/"
    )
    return "\n".join([style(head, fg="red"), *lines, step])


def scratch_folders(results: Sequence[Result]) -> str:
    """A line for each run whose scratch folder was kept: the command that repeats the run."""
    from kbtools.running.kept import repeat_command

    folders = sorted(result.scratch for result in results if result.scratch)
    if not folders:
        return "kept: nothing, as no snippet was run; see --all"
    head = "kept: the scratch folder of each run; these commands repeat the runs:"
    return "\n".join([head, *(f"  {repeat_command(folder)}" for folder in folders)])


def table(runs: Sequence[ToolchainRun]) -> str:
    """Snippets × toolchains, a verdict in each cell."""
    names = [run.name or run.brief for run in runs]
    verdicts: dict[str, dict[int, Result]] = {}
    for column, run in enumerate(runs):
        for result in run.results:
            verdicts.setdefault(result.task.snippet.name, {})[column] = result
    widths = [max(len(name), 14) for name in names]
    head = " " * 14 + "  ".join(f"{name:<{w}}" for name, w in zip(names, widths, strict=True))
    lines = [head.rstrip()]
    for name in sorted(verdicts):
        cells = []
        for column, width in enumerate(widths):
            text, colour = "", None
            if result_of_run := verdicts[name].get(column):
                verdict = result_of_run.verdict
                text, colour = f"{MARKS[verdict.colour]} {verdict.name}", COLOURS[verdict.colour]
            cells.append(style(f"{text:<{width}}", fg=colour))
        lines.append(f"{name:<14}" + "  ".join(cells).rstrip())
    return "\n".join(lines)


def toolchain_rows(
    toolchain: Toolchain, interpreter: str, sandbox_state: Mapping[str, object]
) -> Iterator[tuple[str, str]]:
    """Pairs of a heading and a value that describe a toolchain and the sandbox around it.

    Args:
        toolchain: What is installed, and the machine that it is on.
        interpreter: Path of its Python.
        sandbox_state: Part of the sandbox → True, or why this kernel does not allow the part.
    """
    yield "interpreter", interpreter
    yield "python", toolchain.python
    yield from toolchain.packages.items()
    yield "platform", f"{toolchain.platform}, {toolchain.libc}, kernel {toolchain.kernel}"
    yield "compiler", toolchain.compiler or "none"
    yield "nvcc", toolchain.cuda or "none on the PATH"
    ptxas = toolchain.ptxas
    yield "ptxas", f"{ptxas.version}, from {ptxas.source}" if ptxas else "none"
    yield "driver", toolchain.driver or "none"
    for number, gpu in enumerate(toolchain.gpus):
        yield f"GPU {number}", f"{gpu.name}, compute capability {gpu.sm}"
    if not toolchain.gpus:
        yield "GPU", "none"
    for part, state in sandbox_state.items():
        yield f"sandbox, {part}", "yes" if state is True else f"NOT sandboxed: {state}"


def _grey(results: Iterable[Result], verbose: bool) -> Iterator[str]:
    groups = not_concluded(results)
    counted, others = (groups, ()) if verbose else most_frequent(groups)
    for group in counted:
        head = style(f"· {len(group.snippets)} {group.verdict}", fg="yellow")
        names = f": {group.names}" if verbose or group.is_listed else ""
        yield f"{head}: {group.reason}{names}"
    if others:
        snippets = sum(len(group.snippets) for group in others)
        yield f"{style(f'· {snippets} more', fg='yellow')}, for {len(others)} other reasons"
    if not verbose and any(not group.is_listed for group in groups):
        yield "  -v names them"
