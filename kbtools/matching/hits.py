"""One cleaned log, and whether a signature whose literal occurs in it reports its failure there.

The twin of this module is `site/assets/matching/hits.js`.
"""

from __future__ import annotations

import re
from enum import IntEnum
from functools import cached_property

import msgspec

from kbtools.articles.model import Signature
from kbtools.articles.signatures import pattern
from kbtools.matching.cleaning import Log
from kbtools.matching.index import IndexEntry
from kbtools.matching.mentions import MARK, is_dealt_with, is_mention, is_piped, is_quiet
from kbtools.matching.rules import (
    CHARACTERS,
    CODE,
    ERROR,
    EXCEPTION,
    FENCE,
    FRAME,
    GLUED,
    LINE_BEGIN,
    LINES,
    LOCATION_LINE,
    MARKS,
    PREFIX,
    RAISE,
    WARNING,
)

_error, _warning, _code, _frame, _location_line, _glued = (
    re.compile(text, re.ASCII) for text in (ERROR, WARNING, CODE, FRAME, LOCATION_LINE, GLUED)
)
_raise, _marks = (re.compile(text, re.ASCII) for text in (RAISE, MARKS))
_exception = re.compile(EXCEPTION, re.ASCII | re.MULTILINE)


class LineKind(IntEnum):
    """What the line of a hit reads as; the smaller, the more the hit counts."""

    ERROR = 0
    OUTPUT = 1
    WARNING = 2
    DEALT_WITH = 3
    """An error or a warning after which the program went on."""


class NearText(IntEnum):
    """Whether the `near` of a signature occurs in the log; the smaller, the more the hit counts."""

    PRESENT = 0
    NOT_REQUIRED = 1
    """The signature has no `near`."""
    ABSENT = 2


class Hit(msgspec.Struct, frozen=True):
    """A signature of an article that occurs in a log, and how much that counts."""

    entry: IndexEntry
    signature: Signature
    offset: int
    """Where its literal begins in the text of the log."""
    kind: LineKind
    near: NearText
    is_cut: bool = False
    """Whether the log has only the beginning of the literal."""
    texts: int = 1
    """How many different texts of the article's signatures the log has."""
    only_noticed: bool = False
    """Whether each line with one of them only noticed a failure that came first."""

    @property
    def strength(self) -> tuple[object, ...]:
        """Of the hits of one article the smallest is the best evidence for it."""
        signature = self.signature
        clear = signature.wraps, self.kind, self.near, signature.shared
        return *clear, signature.regex is None, self.offset


class Examination:
    """What is worked out once for a log, whichever signatures occur in it."""

    def __init__(self, log: Log) -> None:
        self.log = log
        self._present: dict[str, bool] = {}

    def hit(self, entry: IndexEntry, signature: Signature, offset: int) -> Hit | None:
        """The hit of a signature, if the log reports its failure where its literal occurs.

        `entry` is the signature's article. `offset` is where the literal begins in the text.
        """
        span = matched_span(signature, offset, self.log)
        if span is None or is_code(self.log, offset) or self.is_only_mentioned(offset, span):
            return None
        near = self.near(signature)
        if signature.shared and near is NearText.ABSENT:
            return None
        if signature.unless is not None and self._occurs(signature.unless):
            return None
        return Hit(entry, signature, offset, line_kind(self.log, offset), near)

    def is_only_mentioned(self, offset: int, span: tuple[int, int]) -> bool:
        """Whether a line has the text of a failure and reports none.

        `offset` is a place in the line; `span` is the start and the end of the text that matched.
        """
        line, start = self.log.excerpt(offset), self.log.excerpt_start(offset)
        before, after = line[: max(span[0] - start, 0)], line[max(span[1] - start, 0) :]
        if is_mention(before + MARK + after, self._is_title(offset)):
            return True
        return is_quiet(self._prefix(offset), line) and not self.is_piped

    @cached_property
    def is_piped(self) -> bool:
        """Whether the levels of this log carry no information."""
        return is_piped(self.log.text, self._prefix)

    def near(self, signature: Signature) -> NearText:
        """Whether the `near` of a signature occurs anywhere in the log."""
        if signature.near is None:
            return NearText.NOT_REQUIRED
        return NearText.PRESENT if self._occurs(signature.near) else NearText.ABSENT

    def _occurs(self, context: str) -> bool:
        """Whether a `near` or an `unless` occurs anywhere in the log."""
        if context not in self._present:
            search = pattern(context).search
            texts = dict.fromkeys((self.log.text, self.log.by_lines))  # the same one, mostly
            self._present[context] = any(search(text) is not None for text in texts)
        return self._present[context]

    def _is_title(self, offset: int) -> bool:
        """Whether a place lies in the first line of a text, and that is a title."""
        if self.log.line_index(offset):
            return False
        is_alone = self.log.size > 1 and not self.log.line(1, LINE_BEGIN).strip()
        return is_alone or self.log.is_titled

    def _prefix(self, offset: int) -> str:
        return self.log.prefix(self.log.line_index(offset))


def matched_span(signature: Signature, offset: int, log: Log) -> tuple[int, int] | None:
    """The start and the end of the text that a signature matches; None where its regex does not.

    `offset` is where the literal of the signature begins in the text of the log.
    """
    end = offset + len(signature.literal)
    if signature.regex is None:
        return offset, end
    around, start = log.around(offset, LINES, CHARACTERS)
    match = pattern(signature.regex).search(around)
    if match is None:
        return None
    first, last = start + match.start(), start + match.end()
    return (first, max(last, end)) if first <= offset < last else (offset, end)


def has_exception(log: Log) -> bool:
    """Whether a log shows an exception: a warning in it is not surely what it is about."""
    return _exception.search(log.by_lines) is not None


def line_kind(log: Log, offset: int) -> LineKind:
    """What a line reads as. Its prefix may say so, too: a level such as ERROR."""
    line, index = log.excerpt(offset), log.line_index(offset)
    prefixed = log.prefixed_line(index)[:PREFIX]
    if is_dealt_with(index, log.line):
        return LineKind.DEALT_WITH
    if _error.search(line) or _error.search(prefixed):
        return LineKind.ERROR
    is_warning = _warning.search(line) or _warning.search(prefixed)
    return LineKind.WARNING if is_warning else LineKind.OUTPUT


def is_code(log: Log, offset: int) -> bool:
    """Whether a line is source that a traceback shows.

    The line below a frame is source, unless it stands further left or reads as an exception: a
    frame of `python -c` shows no source, and a text may have lost its indentation. Where an
    exception is glued to the end of a line of source, it counts. So does what the last frame of a
    traceback raises, where its exception is cut off.
    """
    if _glued.search(log.text[log.excerpt_start(offset) : offset]):
        return False
    index = log.line_index(offset)
    above = log.line(index - 1, LINE_BEGIN)
    is_below = _frame.search(above) and log.indent(index) >= log.indent(index - 1)
    if is_below and _is_last_raise(log, index):
        return False
    if is_below and not _exception.search(log.line(index, LINE_BEGIN)):
        return True
    if _location_line.search(above) and log.depth(index) > log.depth(index - 1):
        return True
    return bool(_code.search(log.excerpt(offset)))


def _is_last_raise(log: Log, index: int) -> bool:
    """Whether a line below a frame raises what its traceback ends with, and nothing follows it."""
    if not _raise.search(log.line(index, LINE_BEGIN).strip()):
        return False
    below = log.line(index + 1, LINE_BEGIN).strip()
    if _marks.search(below):
        below = log.line(index + 2, LINE_BEGIN).strip()
    return not below or below.startswith(FENCE)
