"""Both ends of a log of any length, and the numbers of its lines."""

from __future__ import annotations

import re
from collections import Counter
from typing import BinaryIO

import msgspec
from msgspec.structs import replace

from kbtools.matching.matcher import Diagnosis

ENDS = 8 * 1024 * 1024
"""Bytes that are read of the beginning and of the end of a log: more than the matcher uses."""
LINE_NUMBER = re.compile(r"(?<=\bline )\d+")
"""The number of a line, in a sentence of the answer."""


class LogEnds(msgspec.Struct, frozen=True):
    """The text of a log, without its middle where it is very long."""

    text: str
    head_lines: int
    """Lines that end in the part before the middle."""
    left_out: int
    """Lines that end in the middle, which is not part of the text."""

    def line_in_file(self, line: int) -> int:
        """The number that a line of the text has in the file."""
        return line + (self.left_out if line > self.head_lines else 0)


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
    end = "\n" if "\n" in text else "\r"  # without a line feed, carriage returns end the lines
    return LogEnds(text, head.count(end.encode()), middle[end.encode()])


def in_whole_log(answer: Diagnosis, ends: LogEnds) -> Diagnosis:
    """The diagnosis of a log's ends, with the numbers that the lines have in the file."""
    if not ends.left_out:
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


def _count(total: Counter[bytes], text: bytes) -> None:
    total.update({end: text.count(end) for end in (b"\n", b"\r")})
