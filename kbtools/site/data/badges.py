"""The state of an article as a picture: SVG, and the JSON that shields.io draws one from."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

import msgspec

from kbtools.site.model import REPORTED, ArticleView, SiteModel
from kbtools.site.rendering import cut

LEFT = "#3d444d"
RIGHT = {
    "reproduced": "#1a6b34",
    "resolved": "#1a6b34",
    "holds": "#1a6b34",
    "contradicted": "#b3261e",
    "not run": "#5b6470",
    "retired": "#5b6470",
    "reported": "#5b6470",
    "seen": "#5b6470",
    "measured": "#1a6b34",
}
"""State → colour; white on each has a contrast of 5 or more."""
NARROW, WIDE = "fijlrtI.,:;'|! ", "mwMW@"


class Shield(msgspec.Struct, frozen=True, rename="camel"):
    """What shields.io's endpoint badge reads."""

    schema_version: int
    label: str
    message: str
    color: str


def files(model: SiteModel) -> Iterator[tuple[str, bytes]]:
    """Both badges of every article."""
    for view in model.linked.values():
        word = view.state.word
        shield = Shield(1, view.id, message(view), RIGHT[word])
        yield f"badges/{view.id}.json", msgspec.json.encode(shield) + b"\n"
        yield f"badges/{view.id}.svg", svg(view).encode()


def message(view: ArticleView) -> str:
    """The state, and the number of toolchains with evidence."""
    word, count = view.state.word, view.state.toolchains
    if word in ("not run", "retired"):
        return word
    if word == REPORTED:
        return "reported, not run here"
    return f"{word}, {count} toolchain{'s' * (count != 1)}"


def svg(view: ArticleView) -> str:
    """The badge: the id and the state; its title has both for a screen reader."""
    left, right = view.id, message(view)
    left_width, right_width = width(left) + 14, width(right) + 14
    full_width = left_width + right_width
    newest = f", newest run {view.newest:%Y-%m-%d}" if view.newest else ""
    title = escape(f"{view.id}: {cut(view.original.title)}; {right}{newest}")
    colour = RIGHT[view.state.word]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{full_width}" height="20" role="img"'
        f' aria-label="{title}"><title>{title}</title>'
        f'<clipPath id="r"><rect width="{full_width}" height="20" rx="3"/></clipPath>'
        f'<g clip-path="url(#r)"><rect width="{left_width}" height="20" fill="{LEFT}"/>'
        f'<rect x="{left_width}" width="{right_width}" height="20" fill="{colour}"/></g>'
        f'<g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11">'
        f'<text x="7" y="14" textLength="{left_width - 14}">{escape(left)}</text>'
        f'<text x="{left_width + 7}" y="14" textLength="{right_width - 14}">'
        f"{escape(right)}</text></g></svg>\n"
    )


def width(text: str) -> int:
    """The approximate width of a text, in pixels; `textLength` makes the text fit it."""
    return round(sum(4 if c in NARROW else 10 if c in WIDE else 7 for c in text))
