"""For people: what failed first in a log, and the articles that it is about, as lines of text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from shlex import quote
from typing import TYPE_CHECKING

from click import style

from kbtools.matching import Diagnosis, FirstFailure, Match

if TYPE_CHECKING:
    from kbtools.matching.doctor_report import DoctorFinding
    from kbtools.matching.scoring import Score, ScoredLog

WIDTH = 120
"""Characters of a log's line that are printed."""
FIRST_WIDTH = 480
"""Characters of the first failure that are printed: four lines of a terminal."""
NEAR_THE_END = 12
"""Lines below the first failure with which it can still be seen on a terminal."""
ECHOES = 8
"""Lines that follow from the first failure, as many as are listed."""
ANSWERS = {"affected": "red", "not affected": "green", "unknown": "yellow"}

REPORTED = {
    "affected": "inside the reported window",
    "not affected": "not affected by what was reported",
    "unknown": "unknown",
}
"""What a notice says of the reader's versions: in no colour, since nothing was run."""


def diagnosis(answer: Diagnosis, top: int, addresses: dict[str, str]) -> str:
    """What failed first; then the best articles and why, or that there is none.

    `top` is how many articles are printed in full. `addresses` is id → where to read the article.
    """
    blocks = ["\n".join(_first(answer.first))] if answer.first else []
    if not answer.matches:
        lines = "this line" if answer.lines == 1 else f"these {answer.lines} lines"
        none = f"none: nothing in {lines} is a failure in the knowledge base"
        if answer.first:
            none += f"\nby its words: kbtools search {quote(_cut(answer.first.text, WIDTH))}"
        blocks.append(none)
        return "\n\n".join((*blocks, *_found(answer.findings)))
    best = answer.matches[:top]
    causes = {finding.article: finding for finding in answer.findings}
    blocks += ["\n".join(_match(m, addresses[m.id], causes.get(m.id))) for m in best]
    shown = {match.id for match in best}
    blocks += _found(tuple(f for f in answer.findings if f.article not in shown))
    rest = len(answer.matches) - len(best)
    if rest:
        blocks.append(f"and {rest} more: --top {len(answer.matches)}")
    return "\n\n".join(blocks)


def _first(first: FirstFailure) -> Iterator[str]:
    process = f", {first.process}" if first.process else ""
    yield f"{style('failed first', bold=True)}  line {first.line}{process} ({first.kind})"
    yield f"  {_cut(first.text, FIRST_WIDTH)}"
    if first.echoes:
        lines = ", ".join(map(str, first.echoes[:ECHOES]))
        rest = len(first.echoes) - ECHOES
        more = f" and {rest} more" if rest > 0 else ""
        yield f"  echoes        line{'s' * (len(first.echoes) > 1)} {lines}{more}"
    if not first.confident:
        yield f"  {style('not sure', fg='yellow')}      {first.why}"


def _found(findings: Sequence[DoctorFinding]) -> Iterator[str]:
    """A block with what the doctor found that no article above is about; none for nothing."""
    if findings:
        lines = (f"  {finding.level}  {finding.article}  {finding.summary}" for finding in findings)
        head = style("the doctor found, beside this log", bold=True)
        yield "\n".join((head, *lines))


def _match(match: Match, address: str, finding: DoctorFinding | None) -> Iterator[str]:
    mark = "" if match.confident else style("  (not sure)", fg="yellow")
    yield f"{style(match.id, bold=True)}  {match.title}{mark}"
    if match.retired:
        yield "  retired: the page says why"
    if match.standing == "reported":
        yield f"  {style(f'reported, not run here; looked up on {match.looked_up}', fg='magenta')}"
        yield f"  reported help {match.summary}"
        yield f"  your versions {REPORTED[match.affected]}: {match.reason}"
    else:
        yield f"  {style('what helps', fg='green')}    {match.summary}"
        colour = ANSWERS[match.affected]
        yield f"  your versions {style(match.affected, fg=colour)}: {match.reason}"
    if finding:
        yield f"  the doctor    found its cause here: {finding.summary}"
    yield f"  line {match.line:<8} {_cut(match.text)}"
    yield f"  known by      {match.signature}"
    for hint in match.hints:
        yield f"  hint          {hint}"
    yield f"  read on       {address}"


def brief(match: Match, address: str) -> str:
    """Two lines, as under a program's own traceback; a third says why the match is not sure."""
    doubt = f"\n  not sure: {match.hints[0]}" if match.hints and not match.confident else ""
    notice = f" (reported, not run here; {match.looked_up})" if match.standing == "reported" else ""
    return f"{match.id}: {match.summary}{notice}{doubt}\n  {address}"


def brief_first(answer: Diagnosis, text: str) -> str:
    """What failed first, on one line; empty where `text`, which was diagnosed, ends with it."""
    first = answer.first
    if first is None:
        return ""
    below = sum(1 for line in text.split("\n")[first.line :] if line.strip())
    if not first.echoes and below < NEAR_THE_END:
        return ""
    process = f", {first.process}" if first.process else ""
    doubt = "" if first.confident else " (not sure)"
    return (
        f"kbtools: failed first: line {first.line}{process}{doubt}: {_cut(first.text, FIRST_WIDTH)}"
    )


def _cut(text: str, width: int = WIDTH) -> str:
    return text if len(text) <= width else f"{text[:width]}…"


def score(name: str, result: Score) -> str:
    """The score of a set of logs on one line, and a line for each confusion."""
    line = (
        f"{name}: {result.failures} failures, recall at 1 {_share(result.first, result.failures)}, "
        f"at 3 {_share(result.third, result.failures)}, "
        f"sure {_share(result.sure, result.failures)}; "
        f"{result.sound} sound or unrelated, {result.false_alarms} false alarms; "
        f"{result.surely_wrong} sure and wrong"
    )
    return "\n".join((line, *(f"  {count} × {pair}" for pair, count in result.confused.items())))


def _share(part: int, total: int) -> str:
    return f"{100 * part / total:.1f} %" if total else "–"


def wrong(logs: Iterable[ScoredLog]) -> Iterator[str]:
    """A line for each log that was answered wrong."""
    for log in logs:
        if not log.right:
            expected = " or ".join(log.case.expect) or "none"
            yield f"  {log.case.name}: expected {expected}, got {', '.join(log.answer) or 'none'}"
