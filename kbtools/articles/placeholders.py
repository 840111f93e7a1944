"""What the skeleton of a new article holds in place of its words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import msgspec

from kbtools.articles.model import Place
from kbtools.articles.parsing import Page

SUMMARY = "Say the fix in one sentence."
FIX = "Say the one thing to do first."
SYMPTOM = "What a person sees, word for word."
SECTION = "To be written."
COMPONENT = "component"
RECEIPT = "owner/repo#123"
WINDOW = '- {package: ">=2.7,<2.8"}'
SIGNATURE = "ZeroDivisionError: division by zero in {id}"
"""Of the failure that the skeleton's own repro makes."""


class Placeholder(msgspec.Struct, frozen=True):
    """A line of the skeleton that nobody has replaced yet."""

    place: Place
    text: str


def placeholders(pages: Iterable[Page]) -> Iterator[Placeholder]:
    """What is still to be written on these pages, in the order of their lines."""
    for page in pages:
        if page.matter.get("summary") == SUMMARY:
            yield Placeholder(page.place(page.line_of("summary")), SUMMARY)
            yield Placeholder(page.place(page.line_of("components")), words(page.matter))
        elif page.matter.get("components") == [COMPONENT]:
            yield Placeholder(page.place(page.line_of("components")), f"components: [{COMPONENT}]")
        if signature := skeleton_signature(page.matter):
            yield Placeholder(page.place(page.line_of("signatures")), signature)
        for number, line in enumerate(page.lines, 1):
            in_text = number > page.opening and line in (FIX, SYMPTOM, SECTION)
            if in_text or RECEIPT in line or WINDOW in line:
                yield Placeholder(page.place(number), line.strip())


def words(matter: Mapping[str, object]) -> str:
    """The words of the skeleton that every article has to choose, whatever they are now."""
    chosen = (f"{key}: {matter.get(key)}" for key in ("stage", "severity"))
    components = matter.get("components")
    names = components if isinstance(components, (list, tuple)) else [components]
    return f"components: [{', '.join(map(str, names))}], {', '.join(chosen)}, unless they are right"


def skeleton_signature(matter: Mapping[str, object]) -> str:
    """The signature that the skeleton brought, if front matter still has it.

    Args:
        matter: Values of the front matter, as YAML has them.
    """
    text = SIGNATURE.format(id=matter.get("id"))
    signatures = matter.get("signatures")
    entries = signatures if isinstance(signatures, (list, tuple)) else []
    literals = [entry.get("literal") for entry in entries if isinstance(entry, dict)]
    return text if text in literals else ""
