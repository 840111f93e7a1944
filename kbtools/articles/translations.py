"""Whether the words of an original have changed since a translation was made."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator

import msgspec

from kbtools.articles.model import EDITION, Place
from kbtools.articles.parsing import Page


class OutdatedTranslation(msgspec.Struct, frozen=True):
    """A translation whose original has changed since."""

    place: Place
    edition: str
    """The current edition of the original's words."""
    original: str
    """Path of the original."""


def edition(page: Page) -> str:
    """A name for the current words of a page: 12 hexadecimal digits.

    The words are those of the title, the summary and the prose. Line breaks do not count, nor does
    the code of snippets, which a translation has byte for byte (KB303).
    """
    words = [str(page.matter.get("title")), str(page.matter.get("summary")), *page.prose]
    if page.is_notice:
        words += [str(page.matter.get(key)) for key in ("remedies", "not", "hardware")]
    return hashlib.sha256(" ".join(" ".join(words).split()).encode()).hexdigest()[:12]


def is_outdated(translation: Page, original: Page) -> bool:
    """Whether the original has changed since it was translated."""
    return translation.matter.get("follows") != edition(original)


def outdated_translations(pages: Iterable[Page]) -> Iterator[OutdatedTranslation]:
    """The translations among these pages whose originals, also among them, have changed since."""
    pages = list(pages)
    originals = {str(page.matter.get("id")): page for page in pages if not page.translates}
    for page in pages:
        original = originals.get(str(page.matter.get("id")))
        names_edition = re.fullmatch(EDITION, str(page.matter.get("follows")))
        if page.translates and original and names_edition and is_outdated(page, original):
            yield OutdatedTranslation(
                page.place(page.line_of("follows")), edition(original), original.path
            )
