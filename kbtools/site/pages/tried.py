"""What an article was tried on: what happened on every version, and how far its words go."""

from __future__ import annotations

from collections.abc import Sequence

from kbtools.evidence.board import CONTRADICTED, FAILS, WORKS, Cell
from kbtools.evidence.scope import names_for, scope_of, versions_of
from kbtools.site.model import ArticleView
from kbtools.site.pages.frame import Frame
from kbtools.site.rendering import LONG, cut


def sentence(frame: Frame, view: ArticleView, cells: Sequence[Cell]) -> str:
    """As in "Fails on every version tried: numpy 1.26.4 to 2.3.1 (5 versions)."

    Empty where nothing was measured, where versions differ, and where a run contradicts the
    article.

    Args:
        frame: The page that it is for.
        view: The article.
        cells: The article's cells of the board, one for each toolchain.
    """
    measured = [
        (toolchain, cell.mark)
        for toolchain, cell in zip(frame.model.toolchains, cells, strict=True)
        if cell.mark in (FAILS, WORKS, CONTRADICTED)
    ]
    marks = {mark for _, mark in measured}
    if len(marks) != 1 or CONTRADICTED in marks:
        return ""
    versions = versions_of(
        [toolchain for toolchain, _ in measured], names_for(view.article, frame.model.headline)
    )
    key = "article.same-fails" if FAILS in marks else "article.same-works"
    if sum(map(len, versions.values())) == 1:
        key += "-once"
    ranges = [range_of(frame, name, of_name) for name, of_name in versions.items()]
    return frame.words(key, range=frame.words("site.comma").join(ranges))


def scope(frame: Frame, view: ArticleView) -> str:
    """What a sentence speaks of that names no release and no GPU; empty where nothing was run.

    As in "A sentence that names no release and no GPU speaks of what was run: torch 2.10.0 to
    2.13.0 (4 versions); NVIDIA H100 80GB HBM3; linux-x86_64."
    """
    of_article = scope_of(view.article, view.observations, frame.model.headline)
    if of_article is None:
        return ""
    comma = frame.words("site.comma")
    ranges = [range_of(frame, name, of_name) for name, of_name in of_article.versions.items()]
    key, gpus = "article.scope", of_article.gpus
    if gpus is not None:
        key, gpus = "article.scope-gpu", gpus or (frame.words("article.scope-no-gpu"),)
    machines = comma.join((*(gpus or ()), *of_article.platforms))
    return cut(frame.words(key, range=comma.join(ranges), machines=machines), LONG)


def range_of(frame: Frame, name: str, versions: Sequence[str]) -> str:
    """As in `numpy 1.26.4 to 2.3.1 (5 versions)`.

    Args:
        frame: The page that it is for.
        name: Of a distribution.
        versions: Those that were tried, from old to new.
    """
    if len(versions) == 1:
        return f"{name} {versions[0]}"
    values = {"name": name, "first": versions[0], "last": versions[-1], "n": len(versions)}
    return frame.words("article.range", **values)
