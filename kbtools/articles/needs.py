"""What must be there before a snippet can be run: `needs`, of an article and of a fence."""

from __future__ import annotations

import re
from collections.abc import Mapping

ANY = "*"
"""The range of whatever version."""
PROGRAM = "bin:"
"""Begins the name of a program, as in `bin:cuobjdump`."""

NEED = re.compile(r"^\s*((?:bin:)?[A-Za-z0-9][\w.+-]*?)\s*(\*|(?:[<>=!~]=?|===)\s*[^\s].*?)?\s*$")
CONTINUES = re.compile(r"\s*(?:[<>=!~]=?|===)")


def parse_needs(text: str) -> dict[str, str]:
    """The meaning of a fence's `needs="torch>=2.4,<2.8, bin:cuobjdump"`.

    Args:
        text: Names joined by commas, each with a range or without one. A part that begins with an
            operator continues the range before it.

    Returns:
        Name → range, `*` where any version will do.

    Raises:
        ValueError: a part is not a name and a version specifier, or a name is given twice.
    """
    parts: list[str] = []
    for part in re.split("[,;]", text):
        if parts and CONTINUES.match(part):
            parts[-1] = f"{parts[-1].rstrip()},{part.strip()}"
        else:
            parts.append(part)
    needs: dict[str, str] = {}
    for part in parts:
        match = NEED.match(part)
        if not match:
            raise ValueError(f"`{part.strip()}` is not a name and a version specifier")
        if match[1] in needs:
            raise ValueError(f"`{match[1]}` is given twice: join the two ranges with a comma")
        needs[match[1]] = match[2] or ANY
    return needs


def joined(*several: Mapping[str, str]) -> dict[str, str]:
    """All that several `needs` ask for; what two of them name must satisfy both ranges."""
    needs: dict[str, str] = {}
    for part in several:
        for name, text in part.items():
            ranges = dict.fromkeys((needs.get(name, ANY), text))
            needs[name] = ",".join(r for r in ranges if r != ANY) or ANY
    return needs


def in_words(name: str, text: str) -> str:
    """As in `torch >=2.4`, `torch`, `the program cuobjdump`."""
    if name.startswith(PROGRAM):
        return f"the program {name.removeprefix(PROGRAM)}"
    return name if text == ANY else f"{name} {text}"
