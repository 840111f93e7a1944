"""What a receipt may be, and where it leads: one grammar, in the prose and in the front matter.

In prose a receipt stands in square brackets; a `receipt` of the front matter joins several by `, `.
"""

from __future__ import annotations

import re
from enum import StrEnum

NAME = r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*"
"""Of a project: `owner/repo`."""
SNIPPET = re.compile(r"(?:(?P<article>[A-Z][A-Z-]{0,9}\d+)/)?(?P<snippet>[a-z][a-z-]*\d[a-z0-9-]*)")
THREAD = re.compile(rf"(?P<project>{NAME})#(?P<number>[1-9]\d*)")
COMMIT = re.compile(rf"(?P<project>{NAME})@(?P<commit>[0-9a-f]{{7,40}})")
RELEASE = re.compile(rf"(?P<project>{NAME})@(?P<tag>[\w][\w./+-]*)")
SOURCE = re.compile(
    rf"{RELEASE.pattern} (?P<path>[^\s\[\]:#?,]+)"
    r"(?::(?P<first>[1-9]\d*)(?:-(?P<last>[1-9]\d*))?)?"
)
PAGE = re.compile(r"https://[^\s,\[\]]+")
INFERRED = "inferred"
LIKE = re.compile(rf"{NAME}\s*[#@]|[A-Z][A-Z-]{{0,9}}\d+/\S|https?://\S+")
"""How a text in brackets begins that is meant as a receipt, whether it is well formed or not."""

OUTSIDE = (THREAD, SOURCE, RELEASE, PAGE)
"""What leads out of the knowledge base; a commit is written as a release is."""
_ONE = f"({'|'.join(re.sub(r'[?]P<[a-z]+>', '', form.pattern) for form in OUTSIDE)})"
FIELD = f"^{_ONE}(, {_ONE})*$"
"""A `receipt` of the front matter, also in the JSON Schema, which knows no named groups."""


class Kind(StrEnum):
    """What a receipt leads to."""

    SNIPPET = "snippet"
    THREAD = "thread"
    SOURCE = "source"
    PAGE = "page"
    INFERRED = "inferred"
    MALFORMED = "malformed"


def kind_of(text: str) -> Kind | None:
    """What a text in square brackets is a receipt for; None if it is prose."""
    if text == INFERRED:
        return Kind.INFERRED
    if SNIPPET.fullmatch(text):
        return Kind.SNIPPET
    if THREAD.fullmatch(text) or COMMIT.fullmatch(text):
        return Kind.THREAD
    if SOURCE.fullmatch(text) or RELEASE.fullmatch(text):
        return Kind.SOURCE
    if PAGE.fullmatch(text):
        return Kind.PAGE
    return Kind.MALFORMED if LIKE.match(text) else None


def url(text: str) -> str:
    """The address that a receipt leads to outside of the knowledge base; empty for all others."""
    if match := THREAD.fullmatch(text):
        return f"https://github.com/{match['project']}/issues/{match['number']}"
    if match := COMMIT.fullmatch(text):
        return f"https://github.com/{match['project']}/commit/{match['commit']}"
    if match := SOURCE.fullmatch(text):
        lines = f"#L{match['first']}" if match["first"] else ""
        lines += f"-L{match['last']}" if match["last"] else ""
        return f"https://github.com/{match['project']}/blob/{match['tag']}/{match['path']}{lines}"
    if match := RELEASE.fullmatch(text):
        return f"https://github.com/{match['project']}/tree/{match['tag']}"
    return text if PAGE.fullmatch(text) else ""


def split(field: str) -> tuple[str, ...]:
    """The single receipts of a `receipt` of the front matter."""
    return tuple(field.split(", "))


def brackets(field: str) -> str:
    """A `receipt` of the front matter as prose has it: each in its own brackets."""
    return " ".join(f"[{text}]" for text in split(field))


def label(text: str) -> str:
    """A receipt as a list names it: of an address the host, else as it is written."""
    return text.split("/")[2] if PAGE.fullmatch(text) else text
