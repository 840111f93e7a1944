"""Renders `kb/`, `evidence/` and `docs/` as one tree of Markdown, which MkDocs can build."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from kbtools.site import theming
from kbtools.site.data import structured
from kbtools.site.model import ArticleView, NoticeView, SiteModel, cells_of
from kbtools.site.pages import (
    board,
    docs,
    downloads,
    lists,
    maintainers,
    probes,
    refereed,
    releases,
    tables,
)
from kbtools.site.pages.article import article_page
from kbtools.site.pages.frame import Frame
from kbtools.site.pages.logs import logs_page
from kbtools.site.pages.notice import notice_page


def write(files: dict[str, bytes], folder: Path) -> list[Path]:
    """Makes a folder hold these files and no others.

    Args:
        files: path below the folder → content.
        folder: made if it is missing.

    Returns:
        The files that were written, since their content is new.
    """
    # thousands of files: a `Path` of each costs as much as the file itself
    present = {
        f"{directory}/{name}".removeprefix(f"{folder}/")
        for directory, _, names in os.walk(folder)
        for name in names
    }
    obsolete = present - files.keys()
    for name in obsolete:
        (folder / name).unlink()
    for directory, _, _ in os.walk(folder, topdown=False) if obsolete else ():
        if not os.listdir(directory):  # noqa: PTH208
            Path(directory).rmdir()
    changed, parents = [], set[str]()
    for name, content in files.items():
        path = f"{folder}/{name}"
        if name in present:
            with open(path, "rb") as file:  # noqa: PTH123
                if file.read() == content:
                    continue
            os.unlink(path)  # noqa: PTH108 - the site may hold the old file by a hard link
        parent = path.rpartition("/")[0]
        if parent not in parents:
            os.makedirs(parent, exist_ok=True)  # noqa: PTH103
            parents.add(parent)
        with open(path, "wb") as file:  # noqa: PTH123
            file.write(content)
        changed.append(Path(path))
    return changed


def tree(model: SiteModel) -> Iterator[tuple[str, bytes]]:
    """Renders the whole tree but the reference pages: path → content."""
    yield from shared_pages(model)
    for view in model.views:
        yield from article_pages(model, view)
    for notice in model.notices:
        yield from notice_pages(model, notice)


def article_pages(model: SiteModel, view: ArticleView) -> Iterator[tuple[str, bytes]]:
    """The files of one article: its page and its logs in every language, its snippets."""
    cells = cells_of(view, model.toolchains)
    for snippet in view.article.snippets:
        yield downloads.download(model, snippet)
    for language in model.languages:
        frame, head = Frame(model, language, f"{view.id}/"), structured.head(model, view, language)
        yield article_page(frame, view, cells, head)
        yield logs_page(Frame(model, language, f"{view.id}/logs/"), view)


def notice_pages(model: SiteModel, notice: NoticeView) -> Iterator[tuple[str, bytes]]:
    """The files of one notice: its page, and what its snippets have if there are any."""
    view = notice.view
    for snippet in view.article.snippets:
        yield downloads.download(model, snippet)
    for language in model.languages:
        frame, head = Frame(model, language, f"{view.id}/"), structured.head(model, view, language)
        yield notice_page(frame, notice, head)
        if view.article.snippets:
            yield logs_page(Frame(model, language, f"{view.id}/logs/"), view)


def shared_pages(model: SiteModel) -> Iterator[tuple[str, bytes]]:
    """The files that belong to no single article: lists, documentation, styles and scripts."""
    yield from theming.assets().items()
    for language in model.languages:
        yield from documentation(model, language)
        yield lists.home_page(Frame(model, language, ""))
        yield lists.index_page(Frame(model, language, "articles/"))
        yield from lists.facet_pages(model, language)
        yield board.board_page(Frame(model, language, "status/"))
        yield board.paste_page(Frame(model, language, "paste/"))
        yield from releases.release_pages(model, language)
        yield from tables.table_pages(model, language)
        yield board.search_page(Frame(model, language, "search/"))
        yield from board.issue_pages(model, language)
        yield maintainers.maintainers_page(Frame(model, language, maintainers.PATH))
        yield from probes.probe_pages(model, language)
        yield refereed.refereed_page(Frame(model, language, refereed.PATH))


def documentation(model: SiteModel, language: str) -> Iterator[tuple[str, bytes]]:
    """The pages of `docs/`, and the list of them."""
    documents = docs.documents(model, language)
    for path, document in documents.items():
        yield docs.doc_page(model, language, path, document)
    yield docs.guide_page(Frame(model, language, "guide/"), documents)
