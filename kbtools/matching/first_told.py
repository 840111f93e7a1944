"""What a person wrote around a log: titles, sentences and check lists that repeat its failure.

A failure that a title names and that the log below shows is the log's. The twin of this module is
`site/assets/matching/first_told.js`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property

from msgspec.structs import replace

from kbtools.matching.first_forms import Weight
from kbtools.matching.first_lines import LogReader, Record


class Surroundings:
    """Which lines of a passage a person wrote, as far as its form shows it."""

    def __init__(self, reader: LogReader) -> None:
        self._reader = reader
        self._log = reader.log

    def is_title(self, line: int) -> bool:
        """Whether a line is a heading of Markdown."""
        if self._reader.patterns.heading.search(self._log.prefix(line)):
            return not self._is_in_fence(line)
        return self._log.is_titled and line == self._first_line

    def is_apart(self, line: int) -> bool:
        """Whether a line is a title, a title without a mark, or an item of a check list.

        What stands apart is linked to no exception of the log.
        """
        if self.is_title(line):
            return True
        reader = self._reader
        if self._log.prefix(line).strip(" \t-*"):
            return False
        if reader.patterns.field.search(reader.line(line)):
            return True
        return line == self._first_line and self._is_paragraph(line)

    def is_outside(self, line: int) -> bool:
        """Whether a line stands outside of the blocks of code of a passage, below no traceback."""
        is_outside = bool(self._fences) and not self._is_in_fence(line)
        return is_outside and not self._log.depth(max(line - 1, 0))

    def _is_paragraph(self, line: int) -> bool:
        """Whether what stands below a line is no part of its text."""
        reader = self._reader
        if reader.is_fence(line + 1):
            return True
        below = reader.line(line + 2)
        is_linked = reader.patterns.direct.search(below) or reader.patterns.handling.search(below)
        return not reader.line(line + 1) and not is_linked

    def _is_in_fence(self, line: int) -> bool:
        return sum(fence < line for fence in self._fences) % 2 == 1

    @cached_property
    def _fences(self) -> tuple[int, ...]:
        """The lines that begin or end a block of code; of many, the first."""
        fences: list[int] = []
        text, fence = self._log.text, self._reader.rules.fence
        at = text.find(fence)
        while at >= 0 and len(fences) < self._reader.rules.most_fences:
            line = self._log.line_index(at)
            if self._log.line_start(line) == at:
                fences.append(line)
            at = text.find(fence, self._log.line_end(line))
        return tuple(fences)

    @cached_property
    def _first_line(self) -> int:
        """The first line that is not blank."""
        lines = range(self._log.size)
        return next((line for line in lines if self._log.prefixed_line(line).strip()), 0)


def with_told(records: Sequence[Record], around: Surroundings, reader: LogReader) -> list[Record]:
    """The records of a log, where those that a person wrote weigh least.

    That holds for a line that the log below repeats, and for a title above a log with a failure of
    its own, or above a report if it is one, too, or above a sentence that names the error, if the
    title does not. A title alone is the best that a passage has.
    """
    of_log = [record for record in records if not around.is_apart(record.line)]
    best = min((record.weight for record in of_log), default=Weight.TOLD)
    candidates = reader.rules.most_told
    named = reader.patterns.named
    is_named = any(each.weight is Weight.TOLD and named.search(each.text) for each in of_log)
    weighed = []
    for record in records:
        is_apart = around.is_apart(record.line)
        if candidates and (is_apart or around.is_outside(record.line)):
            candidates -= 1
            is_title = around.is_title(record.line)
            is_below = best <= max(record.weight, Weight.LOGGED)
            is_vague = is_named and record.weight > Weight.CAUSE and not named.search(record.text)
            is_told = (is_title and (is_below or is_vague)) or _is_repeated(
                record,
                (each for each in of_log if is_apart or not around.is_outside(each.line)),
                reader,
            )
            weight = Weight.TOLD if is_told else record.weight
            record = replace(record, weight=weight, is_title=is_title)
        weighed.append(record)
    return weighed


def _is_repeated(record: Record, of_log: Iterable[Record], reader: LogReader) -> bool:
    """Whether a line of the log, below a record, has the same text."""
    text = reader.message(record)
    if not text:
        return False
    # an exception is not repeated by a sentence about it
    is_exception = record.weight is Weight.CAUSE
    below = (
        later
        for later in of_log
        if later.line > record.line and not (is_exception and later.weight is Weight.TOLD)
    )
    least = reader.rules.least_repeated
    return any(
        text in message or (len(message) >= least and message in text)
        for message in map(reader.message, below)
    )
