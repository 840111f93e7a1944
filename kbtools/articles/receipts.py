"""The receipts in a text: `[r3]`, `[owner/repo#12]`, `[owner/repo@tag path]`.

The Markdown parser finds them, by a rule of its own: it knows where code is. Rules, pages and
`kbtools claims` ask this module. What a receipt may be says `receipt_grammar`.
"""

from __future__ import annotations

import re

import msgspec
from markdown_it import MarkdownIt
from markdown_it.rules_inline import StateInline

from kbtools.articles.receipt_grammar import Kind, kind_of, url

BRACKET = re.compile(r"\[([^\[\]\n]{2,300})\](?![(\[])|\[([^\[\]\n]{2,300})\](?=\[[^\[\]\n]+\])")
"""A text in square brackets that is no link. Another bracket may follow it: a second receipt."""
STEP = "write [r3], [owner/repo#12] or [owner/repo@tag path/file.py:120], each in its own brackets"


class Receipt(msgspec.Struct, frozen=True, order=True):
    """What stands behind a sentence; `text` is what the author wrote, without the brackets."""

    kind: Kind
    text: str
    line: int = 1
    """Of the file, from 1."""
    bracketed: bool = True
    """Whether it is written as one; else the sentence names a thread, links to a page, or stands
    right above its snippet."""


def snippet_name(text: str, article: str) -> str:
    """The name of the snippet that a receipt means, as in `KB0002/r1`.

    Args:
        text: As in `r1` or `KB0010/r1`.
        article: The id of the article that it stands in.
    """
    return text if "/" in text else f"{article}/{text}"


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
    return url(receipt.text) or (receipt.text if receipt.kind is Kind.PAGE else "")


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
