"""What the site has for programs: JSON, OSV, feeds, badges, texts; and the data in its pages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kbtools.site.data import api, badges, feeds, osv, texts
from kbtools.site.model import Book


def files(book: Book, pages: Iterable[str] = ()) -> Iterator[tuple[str, bytes]]:
    """Every finished file, by its path in the site; `pages` are the paths of those in the tree."""
    yield from api.files(book)
    for entry in book.entries:
        record = osv.record(book, entry)
        if record:
            yield osv.path(entry), api.encoded(record)
    yield from feeds.files(book)
    yield from badges.files(book)
    yield from texts.files(book)
    yield from texts.sitemaps(book, pages)
