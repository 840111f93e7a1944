"""Lists of articles: the index with its filters, a page for every filter, and the home page."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
from markupsafe import Markup

from kbtools.articles.model import Role
from kbtools.evidence.board import CONTRADICTED, FAILS, WORKS
from kbtools.site import model as books
from kbtools.site.model import Book, Entry
from kbtools.site.pages.frame import Frame
from kbtools.site.pages.strip import names_of, strip
from kbtools.site.rendering import cut

NEWEST = 8


class Facet(msgspec.Struct, frozen=True):
    """A way to choose among articles: `kind`, as in `stage`, and each of its values."""

    kind: str
    values: tuple[tuple[str, str, int], ...]
    """Value, in words, and how many articles have it."""


def values_of(book: Book, entry: Entry) -> dict[str, list[str]]:
    """Kind of facet → the values that an article has."""
    matter = entry.article.matter
    ran_on = {here[0].row.toolchain.brief for here in entry.by_toolchain.values()}
    return {
        "component": [*matter.components],
        "stage": [matter.stage],
        "severity": [matter.severity],
        "state": [entry.state.word],
        "toolchain": [brief for brief in book.briefs if brief in ran_on],
    }


def facets(frame: Frame) -> list[Facet]:
    """Every facet, with the values that occur, in the order of the configuration."""
    book, form = frame.book, frame.book.config.article
    counts: dict[str, dict[str, int]] = {}
    for entry in book.entries:
        for kind, values in values_of(book, entry).items():
            for value in dict.fromkeys(values):
                of_kind = counts.setdefault(kind, {})
                of_kind[value] = of_kind.get(value, 0) + 1
    orders = {
        "component": [*form.components],
        "stage": [*form.stages],
        "severity": [*form.severities],
        "toolchain": [*book.briefs],
    }
    made = []
    for kind, found in counts.items():
        order = orders.get(kind, [])
        names = sorted(found, key=lambda one: (order.index(one) if one in order else 10**6, one))
        shown = tuple((name, label_of(frame, kind, name), found[name]) for name in names)
        made.append(Facet(kind, shown))
    return made


def label_of(frame: Frame, kind: str, value: str) -> str:
    """A value in words: as the site says it, where it has a word for it."""
    return cut(frame.words.one_of(kind, value), 80)


def row(frame: Frame, entry: Entry, *, filtered: bool) -> Markup:
    """What a list shows of an article, and what filters ask of it where there are any."""
    facets = values_of(frame.book, entry) if filtered else {}
    html = frame.html(
        "row.html",
        entry=entry,
        text=entry.text(frame.language),
        matter=entry.article.matter,
        facets={kind: [frame.slug(value) for value in values] for kind, values in facets.items()},
    )
    return Markup(html)


def index_page(frame: Frame) -> tuple[str, bytes]:
    """All articles, to be narrowed down; without JavaScript each filter is a page of its own."""
    entries = frame.book.entries
    return frame.plain(
        "index.html",
        frame.words("index.title"),
        frame.words("index.lead", n=len(entries)),
        facets=facets(frame),
        rows=[row(frame, entry, filtered=True) for entry in entries],
        chosen=("", ""),
    )


def facet_pages(book: Book, language: str) -> Iterator[tuple[str, bytes]]:
    """A page for each value of each facet."""
    chosen: dict[tuple[str, str], list[Entry]] = {}
    for entry in book.entries:
        for kind, values in values_of(book, entry).items():
            for value in dict.fromkeys(values):
                chosen.setdefault((kind, value), []).append(entry)
    known = facets(Frame(book, language, "articles/"))
    any_of_them = Frame(book, language, "by/kind/value/")  # of the same depth, so of the same links
    rows = {one.id: row(any_of_them, one, filtered=False) for one in book.entries}
    for (kind, value), entries in chosen.items():
        frame = Frame(book, language, f"by/{kind}/{Frame.slug(value)}/")
        shown = label_of(frame, kind, value)
        title = frame.words("index.facet-title", kind=frame.words(f"index.{kind}"), value=shown)
        yield frame.plain(
            "index.html",
            title,
            frame.words("index.shown", n=len(entries), all=len(book.entries)),
            facets=known,
            rows=[rows[entry.id] for entry in entries],
            chosen=(kind, value),
        )


def telling(book: Book) -> Entry | None:
    """The article that shows best what a page is: seen to fail here and not there, most often."""
    shown = [
        (sum(one.mark in (FAILS, WORKS) for one in cells), book.by_id[article])
        for article, cells in book.board.rows
        if {FAILS, WORKS} <= {one.mark for one in cells}
        and not any(one.mark == CONTRADICTED for one in cells)
    ]
    return max(shown, key=lambda one: one[0])[1] if shown else None


def home_page(frame: Frame) -> tuple[str, bytes]:
    """The way in: search first, then what is new, what there is, and how it is verified."""
    book = frame.book
    example = next((e for e in book.entries if e.state.word == "reproduced"), None)
    sample = telling(book)
    title, tagline = book.config.knowledge_base.name, book.config.site.tagline
    return frame.plain(
        "home.html",
        title,
        tagline if tagline and frame.language == book.languages[0] else frame.words("home.lead"),
        changes=[(change, book.by_id[change.article]) for change in book.changes[:NEWEST]],
        facets={one.kind: one for one in facets(frame)},
        numbers=(
            ("articles", len(book.entries)),
            ("snippets", sum(len({s.snippet.id for s in one.seen}) for one in book.entries)),
            ("runs", sum(len(one.seen) for one in book.entries)),
            ("toolchains", len(book.toolchains)),
        ),
        example=cut(example.original.title, 120) if example else "",
        sample=sample,
        sample_names=", ".join(names_of(sample)) if sample else "",
        strip=strip(frame, sample, books.cells(sample, book.toolchains)) if sample else [],
        roles=tuple(Role),
    )
