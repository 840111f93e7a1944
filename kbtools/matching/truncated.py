"""Find literals that pytest's summary truncated at the width of the terminal.

FAILED test_step.py::test_step - torch.fx.experimental.symbolic_shapes.GuardOnDataDepend...

The twin of this module is `site/assets/matching/truncated.js`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

SUMMARY = r"^(?:FAILED )?\S{1,300}\.py\S{0,300}(?: [^\n]{0,300}\])? - ([^\n]{0,1000})\.\.\.$"
"""A line of the summary; its first group is the message."""
LEAST = 16
"""Characters of a literal that the line must hold."""
MOST = 20
"""Examine at most this many lines: the last that end in three dots."""
CHARACTERS = 2000
"""A line of the summary is shorter than this."""
DOTS = "...\n"

_summary = re.compile(SUMMARY, re.ASCII)


def truncated(text: str, literals: Sequence[str]) -> Iterator[tuple[int, int]]:
    """The number of a literal, and the place in a text where a line ends with its beginning."""
    pieces = (text if text.endswith("\n") else f"{text}\n").split(DOTS)
    lines, offset = [], 0
    for piece in pieces[:-1]:
        start = offset + piece.rfind("\n") + 1
        offset += len(piece) + len(DOTS)
        lines.append((start, offset - 1))
    for start, end in lines[-MOST:]:
        summary = _summary.search(text[start:end]) if end - start < CHARACTERS else None
        if summary is None:
            continue
        message = summary[1]
        for number, literal in enumerate(literals):
            place = message.rfind(literal[:LEAST])
            rest = len(message) - place
            if place >= 0 and rest < len(literal) and literal.startswith(message[place:]):
                yield number, start + summary.start(1) + place
