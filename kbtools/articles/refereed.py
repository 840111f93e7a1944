"""Articles that were read by somebody who did not write them: when, against what, which words."""

from __future__ import annotations

import datetime
import json
import re
from collections.abc import Iterable, Iterator

import msgspec

from kbtools.articles.model import Article, Place
from kbtools.articles.parsing import Page
from kbtools.articles.translations import edition

LINE = re.compile(r"^refereed:.*\n(?:[ \t]+.*\n)*", re.MULTILINE)
"""The key and its value, on one line or on several."""


class ChangedSince(msgspec.Struct, frozen=True):
    """An article whose words have changed since it was refereed."""

    place: Place
    article: str
    """Its id."""
    date: datetime.date
    """On which it was refereed."""


def is_changed(page: Page, article: Article) -> bool:
    """Whether the words of an article have changed since it was refereed."""
    refereed = article.matter.refereed
    return refereed is not None and refereed.edition != edition(page)


def changed_since(pages: Iterable[tuple[Page, Article]]) -> Iterator[ChangedSince]:
    """Those of the articles whose words have changed since they were refereed."""
    for page, article in pages:
        if (refereed := article.matter.refereed) and is_changed(page, article):
            place = page.place(page.line_of("refereed"))
            yield ChangedSince(place, article.id, refereed.date)


def with_referee(text: str, current: str, date: datetime.date, against: str) -> str:
    """The text of an article's file, with `refereed` in its front matter.

    Args:
        text: Of the file; its front matter is sound.
        current: The edition of its words.
        date: The day of the reading.
        against: The sources.
    """
    quoted = json.dumps(" ".join(against.split()), ensure_ascii=False)
    line = f'refereed: {{date: {date}, edition: "{current}", against: {quoted}}}\n'
    opening, closing, rest = text.partition("\n---")
    opening += "\n"
    if LINE.search(opening):
        opening = LINE.sub(lambda _: line, opening, count=1)
    else:
        opening += line
    return opening.removesuffix("\n") + closing + rest
