"""The state of an article as a picture: SVG, and the JSON that shields.io draws one from."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

import msgspec

from kbtools.site.model import Book, Entry
from kbtools.site.rendering import cut

LEFT = "#3d444d"
RIGHT = {
    "reproduced": "#1a6b34",
    "resolved": "#1a6b34",
    "holds": "#1a6b34",
    "contradicted": "#b3261e",
    "not run": "#5b6470",
    "retired": "#5b6470",
}
"""State → colour; white on each has a contrast of 5 or more."""
NARROW, WIDE = "fijlrtI.,:;'|! ", "mwMW@"


class Shield(msgspec.Struct, frozen=True, rename="camel"):
    """What shields.io's endpoint badge reads."""

    schema_version: int
    label: str
    message: str
    color: str


def files(book: Book) -> Iterator[tuple[str, bytes]]:
    """Both badges of every article."""
    for entry in book.entries:
        word = entry.state.word
        shield = Shield(1, entry.id, message(entry), RIGHT[word])
        yield f"badges/{entry.id}.json", msgspec.json.encode(shield) + b"\n"
        yield f"badges/{entry.id}.svg", svg(entry).encode()


def message(entry: Entry) -> str:
    """The state, and on how many toolchains anything was seen."""
    word, count = entry.state.word, entry.state.toolchains
    if word in ("not run", "retired"):
        return word
    return f"{word}, {count} toolchain{'s' * (count != 1)}"


def svg(entry: Entry) -> str:
    """The badge: the id, and the state. Its title says all of it to who cannot see it."""
    left, right = entry.id, message(entry)
    one, two = width(left) + 14, width(right) + 14
    newest = f", newest run {entry.newest:%Y-%m-%d}" if entry.newest else ""
    title = escape(f"{entry.id}: {cut(entry.original.title)}; {right}{newest}")
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{one + two}" height="20" role="img"'
        f' aria-label="{title}"><title>{title}</title>'
        f'<clipPath id="r"><rect width="{one + two}" height="20" rx="3"/></clipPath>'
        f'<g clip-path="url(#r)"><rect width="{one}" height="20" fill="{LEFT}"/>'
        f'<rect x="{one}" width="{two}" height="20" fill="{RIGHT[entry.state.word]}"/></g>'
        f'<g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11">'
        f'<text x="7" y="14" textLength="{one - 14}">{escape(left)}</text>'
        f'<text x="{one + 7}" y="14" textLength="{two - 14}">{escape(right)}</text></g></svg>\n'
    )


def width(text: str) -> int:
    """About how many pixels a text takes; what it differs by, `textLength` makes good."""
    return round(sum(4 if c in NARROW else 10 if c in WIDE else 7 for c in text))
