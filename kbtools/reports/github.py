"""For GitHub Actions: annotations at a line of the Markdown, and the summary of a step."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from urllib.parse import quote

from kbtools.articles import links
from kbtools.articles.claims import Claim
from kbtools.articles.model import Problem, Snippet
from kbtools.articles.placeholders import Placeholder
from kbtools.articles.refereed import ChangedSince
from kbtools.articles.translations import OutdatedTranslation
from kbtools.config import Config
from kbtools.evidence.verdicts import GREEN, RED
from kbtools.reports import claims
from kbtools.reports.not_run import not_concluded
from kbtools.reports.places import failing_line
from kbtools.verification.model import Result, ToolchainRun

SUMMARY_LIMIT = 1 << 20
"""Bytes that GitHub takes of a step's summary; of a longer one it shows nothing."""


def of_runs(runs: Sequence[ToolchainRun], prefix: str = "") -> Iterator[str]:
    """A command for each red verdict, then for each that could not be concluded.

    GitHub shows the first ten errors and the first ten warnings of a step; the summary has all.
    """
    results = [(run, result) for run in runs for result in run.results]
    for colour, level in (("red", "error"), ("grey", "warning")):
        for run, result in results:
            verdict, snippet = result.verdict, result.task.snippet
            if verdict.colour != colour or verdict.name in ("skipped", "unknown"):
                continue
            where = f" on {run.name}" if run.name else ""
            title = f"{verdict.name} {snippet.name} ({snippet.role}){where}"
            message = f"{verdict.reason}\n{result.task.expected.reason}\n{run.label}"
            yield command(level, prefix + snippet.place.path, failing_line(result), title, message)


def of_problems(problems: Iterable[Problem], prefix: str = "") -> Iterator[str]:
    """A command for each problem of `kbtools check`."""
    for problem in problems:
        title, place = f"{problem.rule} {problem.message}", problem.place
        message = f"{problem.message}\n{problem.help}"
        yield command("error", prefix + place.path, place.line, title, message)


def asks_for_the_network(snippet: Snippet, prefix: str = "") -> str:
    """A notice for the reviewer at the fence of a snippet with `net=yes`."""
    message = f"{snippet.name} asks for the network (net=yes)"
    place = snippet.place
    return command("notice", prefix + place.path, place.line - 1, message, message)


def behind(translation: OutdatedTranslation, prefix: str = "") -> str:
    """A notice at a translation whose original has changed since."""
    place = translation.place
    message = f"{translation.original} has changed since; its edition is {translation.edition} now"
    return command("notice", prefix + place.path, place.line, message, message)


def changed_since_refereed(changed: ChangedSince, prefix: str = "") -> str:
    """A notice at an article whose words have changed since it was refereed."""
    place, message = changed.place, f"its words have changed since it was refereed, {changed.date}"
    return command("notice", prefix + place.path, place.line, message, message)


def placeholder(placeholder: Placeholder, prefix: str = "") -> str:
    """A warning at a line that is still to be written."""
    place, message = placeholder.place, f"still to be written: {placeholder.text}"
    return command("warning", prefix + place.path, place.line, message, message)


def bare_claim(claim: Claim, prefix: str = "") -> str:
    """A notice at a claim that has no receipt."""
    return command(
        "notice",
        prefix + claim.place.path,
        claim.place.line,
        "a claim without a receipt",
        claims.notice(claim),
    )


def command(level: str, path: str, line: int, title: str, message: str) -> str:
    """A workflow command. No text ends it early, whatever it holds.

    Args:
        level: `error`, `warning` or `notice`.
        path: Of the file, from the root of the repository.
        line: Of the file, from 1.
        title: Shown in bold; the first 200 characters are.
        message: Shown below it.
    """
    properties = {"file": path, "line": str(line), "title": title[:200]}
    listing = ",".join(f"{key}={_property(value)}" for key, value in properties.items())
    return f"::{level} {listing}::{_data(message)}"


def error(title: str, message: str) -> str:
    """A workflow command that shows an error on the summary of the run, at no line of a file.

    `title` stands above the `message`. No text ends it early, whatever it holds.
    """
    return f"::error title={_property(title)}::{_data(message)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def summary(runs: Sequence[ToolchainRun], config: Config, source: str = "") -> str:
    """The run as Markdown: counts, what is red and why, what was left out and why.

    `source` is the address that stands before the path of a file, to show its lines.

    Args:
        runs: One for each toolchain.
        config: Says where the knowledge base lies in its repository.
        source: The address that stands before the path of a file, to show its lines.
    """
    lines: list[str] = []
    for run in runs:
        lines += [f"### {_heading(run)}", "", *_machine(run), "", *_counts(run), ""]
        reds = [result for result in run.results if result.verdict.colour == "red"]
        if reds:
            lines += ["| contradicted | at | why |", "| --- | --- | --- |"]
            lines += [_row(result, config, source) for result in reds]
            lines.append("")
        not_run = list(_not_run(run.results))
        if run.left_out:
            lines += [f"{run.left_out}: {code(run.left_out.command)}", ""]
        if not_run:
            lines += ["<details><summary>Not run, or not concluded</summary>", ""]
            lines += [*not_run, "", "</details>", ""]
    text = "\n".join(lines) + "\n"
    return _cut(text, SUMMARY_LIMIT - 1024)


def _heading(run: ToolchainRun) -> str:
    return f"kbtools verify on {run.name}" if run.name else "kbtools verify"


def _machine(run: ToolchainRun) -> Iterator[str]:
    toolchain = run.toolchain
    yield f"{code(run.software)}, {run.seconds:.1f} s"
    for gpu in dict.fromkeys(toolchain.gpus):
        count = toolchain.gpus.count(gpu)
        yield f"<br>{count} × {code(gpu.name)}, compute capability {gpu.sm}, driver " + code(
            toolchain.driver or "unknown"
        )
    if not toolchain.gpus and "gpus" in run.headline:
        yield "<br>no GPU"
    if run.unsandboxed:
        yield f"<br>**not sandboxed**: {code(run.unsandboxed)}"


def _counts(run: ToolchainRun) -> Iterator[str]:
    counts = Counter(result.verdict.name for result in run.results)
    order = [*RED, *GREEN, *(name for name in counts if name not in RED + GREEN)]
    names = [name for name in order if counts[name]]
    if not names:
        yield "Nothing was run."
        return
    yield f"| {' | '.join(names)} |"
    yield "|" + " --- |" * len(names)
    yield f"| {' | '.join(str(counts[name]) for name in names)} |"


def _row(result: Result, config: Config, source: str) -> str:
    task, verdict = result.task, result.verdict
    name, site = task.snippet.name, config.knowledge_base.url
    if site:
        name = f"[{name}]({links.url(task.article.id, site)})"
    path, line = task.snippet.place.path, failing_line(result)
    at = code(f"{path}:{line}")
    if source:
        at = f"[{at}]({source}{quote(path)}?plain=1#L{line})"
    cells = (f"{verdict.name} {name} ({task.snippet.role})", at, code(verdict.reason))
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def _not_run(results: Iterable[Result]) -> Iterator[str]:
    for group in not_concluded(results):
        names = f" ({group.names})" if group.is_listed else ""
        yield f"- {group.verdict}: {code(group.reason)}: {len(group.snippets)}{names}"


def code(text: str) -> str:
    """A text as inline code, whoever wrote it: no link, mention or tag is made of it."""
    line = " ".join(text.split())[:500]
    fence = "`" * (max((len(run) for run in _ticks(line)), default=0) + 1)
    return f"{fence} {line} {fence}" if "`" in line else f"`{line}`"


def _ticks(text: str) -> Iterator[str]:
    run = ""
    for c in text + " ":
        if c == "`":
            run += c
        elif run:
            yield run
            run = ""


def _cut(text: str, limit: int) -> str:
    data = text.encode()
    if len(data) <= limit:
        return text
    start = data[:limit].decode("utf-8", "ignore").rpartition("\n")[0]
    return f"{start}\n\nThe rest was left out: GitHub takes no more of a summary.\n"
