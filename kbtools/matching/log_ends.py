"""Both ends of a log of any length, and the numbers of its lines."""

from __future__ import annotations

import re
from typing import BinaryIO

import msgspec
from msgspec.structs import replace

from kbtools.matching.matcher import Diagnosis

ENDS = 8 * 1024 * 1024
"""Bytes that are read of the beginning and of the end of a log: more than the matcher uses."""
LINE_END = re.compile(rb"\r+\n?|\n")
"""What ends a line for the matcher, too (`matching.cleaning`)."""

LINE_NUMBER = re.compile(r"(?<=\bline )\d+")
"""The number of a line, in a sentence of the answer."""


class LogEnds(msgspec.Struct, frozen=True):
    """The text of a log, without its middle where it is very long."""

    text: str
    head_lines: int
    """Lines that end in the part before the middle."""
    left_out: int
    """Lines that end in the middle, which is not part of the text."""


def read_ends(stream: BinaryIO) -> LogEnds:
    """Reads a log to its end, and keeps no more than both its ends in memory."""
    head = stream.read(ENDS)
    tail, last, total = b"", head[-1:], _line_ends(head)
    while chunk := stream.read(ENDS):
        total += _line_ends(chunk, last)
        tail, last = (tail + chunk)[-ENDS:], chunk[-1:]
    content = head + tail
    left_out = total - _line_ends(content) if len(tail) == ENDS else 0
    return LogEnds(content.decode("utf-8", "replace"), _line_ends(head), left_out)


def in_whole_log(answer: Diagnosis, ends: LogEnds) -> Diagnosis:
    """The diagnosis of a log's ends, with the numbers that the lines have in the whole log."""
    if not ends.left_out:
        return answer

    def in_log(line: int) -> int:
        return line + ends.left_out if line > ends.head_lines else line

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
    lines = answer.lines + ends.left_out
    return replace(answer, first=first, matches=matches, lines=lines)


def _line_ends(text: bytes, before: bytes = b"") -> int:
    """How many lines end in a part of a log; `before` is the byte in front of it."""
    if before != b"\r" and b"\r" not in text:
        return text.count(b"\n")
    is_continued = before == b"\r" and text[:1] in (b"\r", b"\n")  # of one end of line
    return sum(1 for _ in LINE_END.finditer(text)) - is_continued
