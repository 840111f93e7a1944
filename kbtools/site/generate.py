"""`kb/` + `evidence/` + `docs/` → one tree of plain Markdown, which any generator can build."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from kbtools.site import theming
from kbtools.site.data import structured
from kbtools.site.model import ArticleView, SiteModel, cells_of
from kbtools.site.pages import board, docs, downloads, lists
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


def tree(model: SiteModel) -> Iterator[tuple[str, bytes]]:
    """Every file's path in the tree, and its content."""
    yield from shared_pages(model)
    for view in model.views:
        yield from article_pages(model, view)


def article_pages(model: SiteModel, view: ArticleView) -> Iterator[tuple[str, bytes]]:
    """What is of one article: its page and its logs in every language, its snippets as files."""
    cells = cells_of(view, model.toolchains)
    for snippet in view.article.snippets:
        yield downloads.download(model, snippet)
    for language in model.languages:
        frame, head = Frame(model, language, f"{view.id}/"), structured.head(model, view, language)
        yield article_page(frame, view, cells, head)
        yield logs_page(Frame(model, language, f"{view.id}/logs/"), view)


def shared_pages(model: SiteModel) -> Iterator[tuple[str, bytes]]:
    """What is of several articles or of none: lists, documentation, styles and scripts."""
    yield from theming.assets().items()
    for language in model.languages:
        yield from documentation(model, language)
        yield lists.home_page(Frame(model, language, ""))
        yield lists.index_page(Frame(model, language, "articles/"))
        yield from lists.facet_pages(model, language)
        yield board.board_page(Frame(model, language, "status/"))
        yield board.paste_page(Frame(model, language, "paste/"))
        yield board.search_page(Frame(model, language, "search/"))
        yield from board.issue_pages(model, language)


def documentation(model: SiteModel, language: str) -> Iterator[tuple[str, bytes]]:
    """The pages of `docs/`, and the list of them."""
    found = docs.documents(model, language)
    for path, (text, written) in found.items():
        yield docs.doc_page(model, language, path, text, written)
    yield docs.guide_page(Frame(model, language, "guide/"), found)
