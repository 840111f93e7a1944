"""For people: what a log speaks of, as lines of text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from click import style

from kbtools.matching import Diagnosis, Match

if TYPE_CHECKING:
    from kbtools.matching.scoring import Score, ScoredLog

WIDTH = 120
"""Characters shown of a log's line."""
ANSWERS = {"affected": "red", "not affected": "green", "unknown": "yellow"}


def diagnosis(found: Diagnosis, top: int, address: dict[str, str]) -> str:
    """The best articles and why, or that there is none; `address` is id → where to read it."""
    if not found.matches:
        return (
            f"none: nothing in these {found.lines} lines is a failure that the knowledge base knows"
        )
    shown = found.matches[:top]
    blocks = ["\n".join(_match(one, address[one.id])) for one in shown]
    rest = len(found.matches) - len(shown)
    if rest:
        blocks.append(f"and {rest} more: --top {len(found.matches)}")
    return "\n\n".join(blocks)


def _match(one: Match, address: str) -> Iterator[str]:
    mark = "" if one.confident else style("  (not sure)", fg="yellow")
    yield f"{style(one.id, bold=True)}  {one.title}{mark}"
    if one.retired:
        yield "  retired: the page says why"
    yield f"  {style('what helps', fg='green')}    {one.summary}"
    yield f"  your versions {style(one.affected, fg=ANSWERS[one.affected])}: {one.reason}"
    yield f"  line {one.line:<8} {one.text if len(one.text) <= WIDTH else one.text[:WIDTH] + '…'}"
    yield f"  known by      {one.signature}"
    for hint in one.hints:
        yield f"  hint          {hint}"
    yield f"  read on       {address}"


def brief(one: Match, address: str) -> str:
    """Two lines, as under a program's own traceback; a third where it is not sure, and why."""
    doubt = f"\n  not sure: {one.hints[0]}" if one.hints and not one.confident else ""
    return f"{one.id}: {one.summary}{doubt}\n  {address}"


def score(what: str, one: Score) -> str:
    """A score on one line, and what was confused."""
    said = (
        f"{what}: {one.failures} failures, recall at 1 {_share(one.first, one.failures)}, "
        f"at 3 {_share(one.third, one.failures)}, sure {_share(one.sure, one.failures)}; "
        f"{one.sound} sound or unrelated, {one.false_alarms} false alarms; "
        f"{one.surely_wrong} sure and wrong"
    )
    return "\n".join((said, *(f"  {count} × {pair}" for pair, count in one.confused.items())))


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "–"


def wrong(given: Iterable[ScoredLog]) -> Iterator[str]:
    """A line for each log that was answered wrong."""
    for one in given:
        if not one.right:
            expected = " or ".join(one.case.expect) or "none"
            yield f"  {one.case.name}: expected {expected}, got {', '.join(one.got) or 'none'}"
