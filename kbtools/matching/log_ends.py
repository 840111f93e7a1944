"""Both ends of a log of any length, and the numbers of its lines."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from typing import BinaryIO

import msgspec
from msgspec.structs import replace

from kbtools.matching.matcher import Diagnosis

ENDS = 8 * 1024 * 1024
"""Bytes that are read of the beginning and of the end of a log: more than the matcher uses."""
LINE_END = re.compile(r"\r+\n?|\n")
"""What ends a line for the matcher (`matching.cleaning`): a progress bar ends each of its states
with a carriage return."""

LINE_NUMBER = re.compile(r"(?<=\bline )\d+")
"""The number of a line, in a sentence of the answer."""


class LogEnds(msgspec.Struct, frozen=True):
    """The text of a log, without its middle where it is very long."""

    text: str
    head_lines: int
    """Lines that end in the part before the middle, as the matcher counts them."""
    left_out: int
    """Lines that end in the middle, which is not part of the text."""
    returns: list[int]
    """Lines of `text`, as the matcher counts them, that a carriage return alone ends: no line of
    the file ends there. Empty for a text without a line feed."""

    def line_in_file(self, line: int) -> int:
        """The number that `grep -n` and an editor give a line of the matcher's."""
        left_out = self.left_out if line > self.head_lines else 0
        return line - bisect_left(self.returns, line) + left_out


def read_ends(stream: BinaryIO) -> LogEnds:
    """Reads a log to its end, and keeps no more than both its ends in memory."""
    head = stream.read(ENDS)
    tail = b""
    middle = Counter[bytes]()
    while chunk := stream.read(ENDS):
        tail += chunk
        _count(middle, tail[:-ENDS])
        tail = tail[-ENDS:]
    text = (head + tail).decode("utf-8", "replace")
    end = "\n" if "\n" in text else "\r"
    by = _line_ends(text)
    returns = [line for line, at_end in enumerate(by, 1) if end not in at_end]
    head_lines = len(_line_ends(text[: len(head.decode("utf-8", "replace"))]))
    return LogEnds(text, head_lines, middle[end.encode()], returns)


def in_whole_log(answer: Diagnosis, ends: LogEnds) -> Diagnosis:
    """The diagnosis of a log's ends, with the numbers that the lines have in the file."""
    if not ends.left_out and not ends.returns:
        return answer
    in_log = ends.line_in_file

    def renumbered(text: str) -> str:
        return LINE_NUMBER.sub(lambda number: str(in_log(int(number[0]))), text)

    matches = tuple(
        replace(match, line=in_log(match.line), hints=tuple(map(renumbered, match.hints)))
        for match in answer.matches
    )
    first = answer.first and replace(
        answer.first,
        line=in_log(answer.first.line),
        why=renumbered(answer.first.why),
        echoes=tuple(map(in_log, answer.first.echoes)),
    )
    return replace(answer, first=first, matches=matches, lines=in_log(answer.lines))


def _line_ends(text: str) -> list[str]:
    """What ends each line of a text, as the matcher reads it."""
    return LINE_END.findall(text)


def _count(total: Counter[bytes], text: bytes) -> None:
    total.update({end: text.count(end) for end in (b"\n", b"\r")})
