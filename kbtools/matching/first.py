"""What failed first: the line of a log that the other failures follow from.

The twin of this module is `site/assets/matching/first.js`. `first_forms` says how lines read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from kbtools.matching.cleaning import Log
from kbtools.matching.first_forms import Kind, Weight
from kbtools.matching.first_lines import LineReader, LogReader, Record
from kbtools.matching.first_links import linked

WHY = {
    Weight.HANDLED: "this exception was being handled when another one was raised",
    Weight.DEATH: "",
    Weight.LOGGED: "it was logged as an error, and nothing in this text ended with it",
    Weight.WITNESS: "it only says that another process, or a connection, had stopped: look for an"
    " earlier line, or for the logs of the other processes",
    Weight.WRAPPER: "it reports a failure that is not in this text: show the lines above it, or the"
    " log of the process that it names",
    Weight.TOLD: "it is part of a sentence: show the log itself",
    Weight.CUT: "the text ends before the exception of this traceback: show the lines below it",
    Weight.AFTERMATH: "it was printed on the way out: show the lines above it",
}
"""Why a record of each weight is no confident answer."""
WHY_TITLE = "it stands in a title, and not in what is below: show the log itself"
WHY_OTHER_TITLE = "the title names another failure"


class FirstFailure(msgspec.Struct, frozen=True):
    """The line that the other failures of a log follow from."""

    line: int
    """Of the log, from 1."""
    text: str
    process: str
    """The rank, worker or pod that printed it, as the log names it; empty where it names none."""
    kind: Kind
    echoes: tuple[int, ...]
    """Lines that repeat it, report it or follow from it."""
    confident: bool
    why: str
    """Why it is not confident; else empty."""


class Failures(msgspec.Struct, frozen=True):
    """What failed in a log, and which lines only noticed it."""

    first: FirstFailure | None = None
    """None where nothing failed."""
    noticed: frozenset[int] = frozenset()
    """Lines below the first failure, or later by their times, that noticed that something had
    stopped: a clock ran out, or a connection was lost."""
    is_worded: bool = False
    """Whether the first failure is known by the words of a title alone."""


def failures(log: Log, lines: LineReader) -> Failures:
    """What failed first in a log, and which lines only noticed it."""
    reader = LogReader(log, lines)
    records = linked(reader)
    if not records:
        return Failures()
    weight = min(record.weight for record in records)
    best = [record for record in records if record.weight == weight]
    if weight is Weight.TOLD:  # a sentence says more than the title that it repeats
        best = [record for record in best if not record.is_title] or best
    first = _earliest(best)
    others = [record for record in records if record is not first]
    echoes = (_number(log, record) for record in others if _is_echo(record, first, lines))
    why = _doubt(first, others, reader)
    noticed = (_number(log, record) for record in _noticed(others, first))
    return Failures(
        FirstFailure(
            line=_number(log, first),
            text=reader.text(first),
            process=first.process,
            kind=first.kind,
            echoes=tuple(dict.fromkeys(echoes))[: lines.rules.most_echoes],
            confident=not why,
            why=why,
        ),
        frozenset(noticed),
        first.is_worded,
    )


def _number(log: Log, record: Record) -> int:
    """The line of a record, from 1, in the log as it was pasted."""
    return log.line_number(log.line_start(record.line))


def _earliest(records: Sequence[Record]) -> Record:
    """The first of these records: by their times where all processes show them, else by lines."""
    of_process: dict[str, Record] = {}
    for record in records:
        of_process.setdefault(record.process, record)
    rivals = list(of_process.values())
    return min(rivals, key=_order) if _are_timed(rivals) else rivals[0]


def _order(record: Record) -> tuple[int, int, int]:
    moment = record.moment
    return (moment.day, moment.microseconds, record.line) if moment else (0, 0, record.line)


def _are_timed(records: Sequence[Record]) -> bool:
    """Whether the times of records can be compared."""
    days = {record.moment.day > 0 if record.moment else None for record in records}
    return len(days) == 1 and None not in days


def _is_echo(record: Record, first: Record, lines: LineReader) -> bool:
    """Whether a record repeats the first failure, or follows from it.

    What was only logged before it is neither: programs log much that they go on after.
    """
    is_before = record.weight is Weight.LOGGED and record.line < first.line
    return (record.weight > first.weight and not is_before) or _is_same(record, first, lines)


def _noticed(others: Sequence[Record], first: Record) -> Iterator[Record]:
    """The records that only noticed the first failure, if that was a failure of its own."""
    if first.weight >= Weight.LOGGED:
        return
    is_later = False
    for record in others:
        if record.weight is not Weight.WITNESS:
            continue
        if record.moment or record.line > first.line:  # else it is as the one above it
            is_later = _earliest(sorted((first, record), key=lambda each: each.line)) is first
        if is_later:
            yield record


def _is_same(record: Record, first: Record, lines: LineReader) -> bool:
    """Whether the message of the first failure is part of a record."""
    same = lines.patterns.same
    message = same.sub("#", first.text.partition(": ")[2] or first.text)
    return message in same.sub("#", record.text)


def _doubt(first: Record, others: Sequence[Record], reader: LogReader) -> str:
    """Why a first failure is no confident answer; empty if it is."""
    if first.is_worded:
        return WHY_TITLE
    if WHY.get(first.weight):
        return WHY[first.weight]
    if first.is_title and others:
        return WHY_TITLE
    if any(_is_other_title(record, first, reader.lines) for record in others):
        return WHY_OTHER_TITLE
    gap_at = reader.log.gap_at
    if gap_at is not None and first.line >= gap_at:
        return "lines in the middle of this long log were not read"
    rivals = [record for record in others if _is_rival(record, first, reader.lines)]
    if rivals:
        return f"line {_number(reader.log, rivals[0])} reads as a failure of its own"
    last = max((record.line for record in others), default=first.line)
    if reader.log.size - max(last, first.line) > reader.rules.lines_after:
        return "the program printed much more after it"
    return ""


def _is_other_title(record: Record, first: Record, lines: LineReader) -> bool:
    """Whether a record is a title that has an exception of its own."""
    if not (record.is_title and lines.patterns.exception.search(record.text)):
        return False
    return not (_is_same(record, first, lines) or _is_same(first, record, lines))


def _is_rival(record: Record, first: Record, lines: LineReader) -> bool:
    """Whether a record may have come about without the first failure."""
    if first.weight is Weight.DEATH:  # it may have followed from what was said just above it
        is_above = 0 < first.line - record.line <= lines.rules.lines_between
        return is_above and record.weight is Weight.LOGGED and record.process == first.process
    if record.weight > first.weight:
        return False
    if first.kind == record.kind == "compiler error":
        return False
    return not _is_same(record, first, lines)
