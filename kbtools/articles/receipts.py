"""What stands behind a sentence: `[r3]`, `[owner/repo#12]`, `[owner/repo@tag path]`, in its text.

The Markdown parser finds them, by a rule of its own: it knows where code is. Rules, pages and
`kbtools claims` ask this module, so that they agree on what a receipt is.
"""

from __future__ import annotations

import re
from enum import StrEnum

import msgspec
from markdown_it import MarkdownIt
from markdown_it.rules_inline import StateInline

NAME = r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*"
"""Of a project: `owner/repo`."""
SNIPPET = re.compile(r"(?:(?P<article>[A-Z][A-Z-]{0,9}\d+)/)?(?P<snippet>[a-z][a-z-]*\d[a-z0-9-]*)")
THREAD = re.compile(rf"(?P<project>{NAME})#(?P<number>[1-9]\d*)")
COMMIT = re.compile(rf"(?P<project>{NAME})@(?P<commit>[0-9a-f]{{7,40}})")
SOURCE = re.compile(
    rf"(?P<project>{NAME})@(?P<tag>[\w][\w./+-]*) (?P<path>[^\s\[\]:#?]+)"
    r"(?::(?P<first>[1-9]\d*)(?:-(?P<last>[1-9]\d*))?)?"
)
INFERRED = "inferred"
BRACKET = re.compile(r"\[([^\[\]\n]{2,300})\](?![(\[])|\[([^\[\]\n]{2,300})\](?=\[[^\[\]\n]+\])")
"""A text in square brackets that is no link. Another bracket may follow it: a second receipt."""
LIKE = re.compile(rf"{NAME}\s*[#@]|[A-Z][A-Z-]{{0,9}}\d+/\S|https?://\S+")
"""How a text in brackets begins that is meant as a receipt, whether it is well formed or not."""
STEP = "write [r3], [owner/repo#12] or [owner/repo@tag path/file.py:120], each in its own brackets"


class Kind(StrEnum):
    """What a receipt leads to."""

    SNIPPET = "snippet"
    THREAD = "thread"
    SOURCE = "source"
    PAGE = "page"
    INFERRED = "inferred"
    MALFORMED = "malformed"


class Receipt(msgspec.Struct, frozen=True, order=True):
    """What stands behind a sentence; `text` is what the author wrote, without the brackets."""

    kind: Kind
    text: str
    line: int = 1
    """Of the file, from 1."""
    bracketed: bool = True
    """Whether it is written as one; else the sentence names a thread, links to a page, or stands
    right above its snippet."""


def kind_of(text: str) -> Kind | None:
    """What a text in square brackets is a receipt for; None if it is prose."""
    if text == INFERRED:
        return Kind.INFERRED
    if SNIPPET.fullmatch(text):
        return Kind.SNIPPET
    if THREAD.fullmatch(text) or COMMIT.fullmatch(text):
        return Kind.THREAD
    if SOURCE.fullmatch(text):
        return Kind.SOURCE
    return Kind.MALFORMED if LIKE.match(text) else None


def snippet_name(text: str, article: str) -> str:
    """The name of the snippet that a receipt means, as in `KB0002/r1`.

    Args:
        text: As in `r1` or `KB0010/r1`.
        article: The id of the article that it stands in.
    """
    return text if "/" in text else f"{article}/{text}"


def url(text: str) -> str:
    """The address of a thread, a commit, or a source at a tag, on the host; empty for others."""
    if match := THREAD.fullmatch(text):
        return f"https://github.com/{match['project']}/issues/{match['number']}"
    if match := COMMIT.fullmatch(text):
        return f"https://github.com/{match['project']}/commit/{match['commit']}"
    if match := SOURCE.fullmatch(text):
        lines = f"#L{match['first']}" if match["first"] else ""
        lines += f"-L{match['last']}" if match["last"] else ""
        return f"https://github.com/{match['project']}/blob/{match['tag']}/{match['path']}{lines}"
    return ""


def name_of(receipt: Receipt, article: str) -> str:
    """A receipt as it is named outside of its article: a snippet as in `KB0002/r1`.

    Args:
        receipt: Of a sentence of the article.
        article: Its id.
    """
    return snippet_name(receipt.text, article) if receipt.kind is Kind.SNIPPET else receipt.text


def address_of(receipt: Receipt, article: str) -> str:
    """Where a receipt leads: on the host, or below the site's root for the runs of a snippet.

    Empty for an inference, and for what is no receipt.

    Args:
        receipt: Of a sentence of the article.
        article: Its id.
    """
    if receipt.kind is Kind.SNIPPET:
        identifier, _, snippet = snippet_name(receipt.text, article).partition("/")
        return f"{identifier}/logs/#{snippet}"
    return receipt.text if receipt.kind is Kind.PAGE else url(receipt.text)


def receipts_in(text: str) -> tuple[Receipt, ...]:
    """The receipts that are written in a text in Markdown, each once, in order."""
    blocks = _markdown.parse(text)
    texts = [
        token.content
        for block in blocks
        for token in block.children or ()
        if token.type == "receipt"
    ]
    kinds = {text: kind_of(text) for text in texts}
    return tuple(Receipt(kind, text) for text, kind in kinds.items() if kind is not None)


def understand_receipts(markdown: MarkdownIt) -> None:
    """Adds to a parser the tokens `receipt`, whose content is the text between the brackets.

    The rule stands before those of links and of emphasis, so that `__init__.py` in a path stays
    what it is; code comes before it.
    """
    markdown.inline.ruler.before("link", "receipt", _receipt)


def _receipt(state: StateInline, silent: bool) -> bool:
    if silent:  # asked while the end of a link's text is searched: what is in a link is its text
        return False
    match = BRACKET.match(state.src, state.pos) if state.src[state.pos] == "[" else None
    text = (match[1] or match[2]) if match else ""
    if match is None or kind_of(text) is None or state.linkLevel:
        return False
    token = state.push("receipt", "", 0)
    token.content = text
    state.pos = match.end()
    return True


_markdown = MarkdownIt("commonmark").enable("table")
understand_receipts(_markdown)
