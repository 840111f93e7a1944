"""`kb/` + `evidence/` + `docs/` → one tree of plain Markdown, which any generator can build."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from kbtools.site import model as books
from kbtools.site import theming
from kbtools.site.data import structured
from kbtools.site.model import Book, Entry
from kbtools.site.pages import lists, others
from kbtools.site.pages.article import article_page
from kbtools.site.pages.frame import Frame
from kbtools.site.pages.logs import logs_page


def write(files: dict[str, bytes], folder: Path) -> list[Path]:
    """Makes a folder hold these files and no others; those that changed."""
    there = {
        f"{where}/{name}".removeprefix(f"{folder}/")
        for where, _, names in os.walk(folder)
        for name in names
    }
    gone = there - files.keys()
    for name in gone:
        (folder / name).unlink()
    for where, _, _ in os.walk(folder, topdown=False) if gone else ():
        if not os.listdir(where):  # noqa: PTH208
            Path(where).rmdir()
    changed, made = [], set[str]()
    for name, content in files.items():
        file = f"{folder}/{name}"  # thousands of them: a `Path` costs as much as the file
        if name in there:
            with open(file, "rb") as old:  # noqa: PTH123
                if old.read() == content:
                    continue
            os.unlink(file)  # noqa: PTH108 - a site may hold the old one by another name
        parent = file.rpartition("/")[0]
        if parent not in made:
            os.makedirs(parent, exist_ok=True)  # noqa: PTH103
            made.add(parent)
        with open(file, "wb") as fresh:  # noqa: PTH123
            fresh.write(content)
        changed.append(Path(file))
    return changed


def tree(book: Book) -> Iterator[tuple[str, bytes]]:
    """Every file's path in the tree, and its content."""
    yield from other_pages(book)
    for entry in book.entries:
        yield from entry_pages(book, entry)


def entry_pages(book: Book, entry: Entry) -> Iterator[tuple[str, bytes]]:
    """What is of one article: its page and its logs in every language, its snippets as files."""
    cells = books.cells(entry, book.toolchains)
    for snippet in entry.article.snippets:
        yield others.download(book, snippet)
    for language in book.languages:
        frame, head = Frame(book, language, f"{entry.id}/"), structured.head(book, entry, language)
        yield article_page(frame, entry, cells, head)
        yield logs_page(Frame(book, language, f"{entry.id}/logs/"), entry)


def other_pages(book: Book) -> Iterator[tuple[str, bytes]]:
    """What is of several articles or of none: lists, documentation, styles and scripts."""
    yield from theming.assets().items()
    for language in book.languages:
        yield from documentation(book, language)
        yield lists.home_page(Frame(book, language, ""))
        yield lists.index_page(Frame(book, language, "articles/"))
        yield from lists.facet_pages(book, language)
        yield others.board_page(Frame(book, language, "status/"))
        yield others.paste_page(Frame(book, language, "paste/"))
        yield others.search_page(Frame(book, language, "search/"))
        yield from others.issue_pages(book, language)


def documentation(book: Book, language: str) -> Iterator[tuple[str, bytes]]:
    """The pages of `docs/`, and the list of them."""
    found = others.docs(book, language)
    for path, (text, written) in found.items():
        yield others.doc_page(book, language, path, text, written)
    yield others.guide_page(Frame(book, language, "guide/"), found)
