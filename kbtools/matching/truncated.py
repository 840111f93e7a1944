"""pytest's summary cuts a failure at the width of the terminal: the beginning of a literal is left.

FAILED test_step.py::test_step - torch.fx.experimental.symbolic_shapes.GuardOnDataDepend...
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

SUMMARY = r"^(?:FAILED )?\S{1,300}\.py\S{0,300}(?: [^\n]{0,300}\])? - ([^\n]{0,1000})\.\.\.$"
LEAST = 16
"""Characters of a literal that must be left of it."""
MOST = 20
"""Lines that are looked at: the last that end as if they were cut."""

_summary = re.compile(SUMMARY, re.ASCII)


def places(text: str, literals: Sequence[str]) -> Iterator[tuple[int, int]]:
    """The number of a literal, and where its beginning stands in a text, at the end of a line."""
    ends = text.split("...\n") if text.endswith("\n") else f"{text}\n".split("...\n")
    lines, at = [], 0
    for piece in ends[:-1]:
        begins = at + piece.rfind("\n") + 1
        at += len(piece) + len("...\n")
        lines.append((begins, at - 1))
    for begins, ends_at in lines[-MOST:]:
        found = _summary.search(text[begins:ends_at]) if ends_at - begins < 2000 else None
        if found is None:
            continue
        said = found[1]
        for number, literal in enumerate(literals):
            left = said.rfind(literal[:LEAST])
            if left >= 0 and len(said) - left < len(literal) and literal.startswith(said[left:]):
                yield number, begins + found.start(1) + left
