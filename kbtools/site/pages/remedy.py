"""The code on an article's first card: its remedy, cut where it is longer than a card."""

from __future__ import annotations

import msgspec

from kbtools.articles.model import Snippet
from kbtools.articles.parsing import Page
from kbtools.articles.remedy import Remedy, remedy
from kbtools.site.rendering import LONG, cut


def first_card(page: Page, snippets: tuple[Snippet, ...]) -> Remedy:
    """The fix in short; `page` is the original, `snippets` are those of the article."""
    short = remedy(page, snippets)
    return msgspec.structs.replace(
        short,
        lines=tuple((sign, cut(text)) for sign, text in short.lines),
        code=cut(short.code, 16 * LONG if short.fix else LONG),
    )
