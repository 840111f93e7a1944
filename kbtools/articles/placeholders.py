"""What the skeleton of a new article holds in place of its words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from kbtools.articles.model import Place
from kbtools.articles.parsing import Page

SUMMARY = "Say the fix in one sentence."
FIX = "Say the one thing to do first."
SYMPTOM = "What a person sees, word for word."
SECTION = "To be written."


class Placeholder(msgspec.Struct, frozen=True):
    """A line of the skeleton that nobody has replaced yet."""

    place: Place
    text: str


def placeholders(pages: Iterable[Page]) -> Iterator[Placeholder]:
    """What is still to be written on these pages, in the order of their lines."""
    for page in pages:
        if page.matter.get("summary") == SUMMARY:
            yield Placeholder(page.place(page.line_of("summary")), SUMMARY)
        for number, line in enumerate(page.lines[page.opening :], page.opening + 1):
            if line in (FIX, SYMPTOM, SECTION):
                yield Placeholder(page.place(number), line)
