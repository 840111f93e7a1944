"""The status board, the box for a traceback, the search page, and a page per upstream thread."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kbtools.articles import links
from kbtools.evidence.board import CONTRADICTED, Cell
from kbtools.site.model import ArticleView, SiteModel, issue_path, prefix
from kbtools.site.pages import marks, tried
from kbtools.site.pages.frame import Frame
from kbtools.site.pages.strip import strip
from kbtools.site.rendering import cut, visible


def board_page(frame: Frame) -> tuple[str, bytes]:
    """The articles that a version decides × toolchains; then the others, by what was tried.

    What a run contradicts comes first of all, whatever decides. A toolchain of a single article
    has no column and is listed below.
    """
    model = frame.model
    of_article = dict(model.board.rows)
    contradicted, decided, others = [], [], []
    everywhere: dict[str, list[ArticleView]] = {}
    for view in model.views:
        cells = of_article[view.id]
        if any(cell.mark == CONTRADICTED for cell in cells):
            contradicted.append((view, _marks(frame, view, cells)))
        elif view.is_decided_by_version:
            decided.append((view, _marks(frame, view, cells)))
        elif sentence := tried.sentence(frame, view, cells):
            everywhere.setdefault(sentence, []).append(view)
        else:
            others.append(view)
    columns = {toolchain.identity for toolchain in model.common}
    return frame.plain(
        "board.html",
        frame.words("board.title"),
        frame.words("board.lead"),
        rows=[*contradicted, *decided],
        own={
            view.id: [mark for mark in strip(frame, view, of_article[view.id]) if mark.sign]
            for view, cells in (*contradicted, *decided)
            if not any(mark.sign for mark in cells)
        },
        everywhere=dict(sorted(everywhere.items(), key=lambda group: -len(group[1]))),
        others=others,
        single=[toolchain for toolchain in model.toolchains if toolchain.identity not in columns],
    )


def _marks(frame: Frame, view: ArticleView, cells: Sequence[Cell]) -> list[marks.Mark]:
    """The marks of an article in the columns of the board."""
    columns = {toolchain.identity for toolchain in frame.model.common}
    return [
        marks.of_cell(frame, view, cell, toolchain)
        for cell, toolchain in zip(cells, frame.model.toolchains, strict=True)
        if toolchain.identity in columns
    ]


def paste_page(frame: Frame) -> tuple[str, bytes]:
    """The box for a traceback, with the titles and summaries of translated articles."""
    views, language = frame.model.views, frame.language
    translated = {
        view.id: [cut(text.title), cut(text.summary)]
        for view in views
        if (text := view.translations.get(language))
    }
    return frame.plain(
        "paste.html",
        frame.words("paste.title"),
        frame.words("paste.lead"),
        example=next((text for view in views for text in _example(view)), ""),
        translated=translated,
    )


def _example(view: ArticleView) -> Iterator[str]:
    for observation in view.observations:
        if (
            observation.verdict.name == "reproduced"
            and 200 < len(observation.row.outcome.output) < 4000
        ):
            yield visible(observation.row.outcome.output)


def search_page(frame: Frame) -> tuple[str, bytes]:
    """A page of results, for a query in the address."""
    return frame.plain("search.html", frame.words("search.title"))


def issue_pages(model: SiteModel, language: str) -> Iterator[tuple[str, bytes]]:
    """A page for every upstream thread, with the articles that mention it."""
    for reference, views in model.issues.items():
        path = issue_path(model, reference, language).removeprefix(prefix(model, language))
        frame = Frame(model, language, path)
        kinds = [
            (
                view,
                [
                    thread
                    for thread in view.article.matter.upstream
                    if thread.reference == reference
                ],
            )
            for view in views
        ]
        yield frame.plain(
            "issue.html",
            frame.words("issue.title", reference=reference),
            frame.words("issue.lead"),
            reference=reference,
            url=links.upstream_url(reference),
            views=kinds,
        )
