"""Whether a translation still says what its original says: it names the edition that it follows."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator

import msgspec

from kbtools.articles.model import EDITION, Place
from kbtools.articles.parsing import Page


class OutdatedTranslation(msgspec.Struct, frozen=True):
    """A translation whose original has been worded anew since."""

    place: Place
    edition: str
    """Of the original's words now."""
    original: str
    """Path of the original."""


def edition(page: Page) -> str:
    """A name for the words of a page as they are now: 12 hexadecimal digits.

    Of the title, the summary and the prose. Where lines are wrapped does not count, nor does the
    code of snippets, which a translation has byte for byte (KB303).
    """
    words = [str(page.matter.get("title")), str(page.matter.get("summary")), *page.prose]
    return hashlib.sha256(" ".join(" ".join(words).split()).encode()).hexdigest()[:12]


def is_outdated(translation: Page, original: Page) -> bool:
    """Whether the original was worded anew after it was translated."""
    return translation.matter.get("follows") != edition(original)


def outdated_translations(pages: Iterable[Page]) -> Iterator[OutdatedTranslation]:
    """The translations among these pages whose original, among them as well, has moved on."""
    every = list(pages)
    originals = {str(page.matter.get("id")): page for page in every if not page.translates}
    for page in every:
        original = originals.get(str(page.matter.get("id")))
        named = re.fullmatch(EDITION, str(page.matter.get("follows")))
        if page.translates and original and named and is_outdated(page, original):
            yield OutdatedTranslation(
                page.place(page.line_of("follows")), edition(original), original.path
            )
