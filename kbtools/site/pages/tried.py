"""What happened on every version tried, as one sentence: for a failure that no version decides."""

from __future__ import annotations

from collections.abc import Sequence

from packaging.version import InvalidVersion, Version

from kbtools.articles.needs import PROGRAM
from kbtools.evidence.board import CONTRADICTED, FAILS, WORKS, Cell
from kbtools.site.model import ArticleView
from kbtools.site.pages.frame import Frame
from kbtools.toolchains.model import MACHINE, Toolchain


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
    versions = versions_of([toolchain for toolchain, _ in measured], names_for(frame, view))
    key = "article.same-fails" if FAILS in marks else "article.same-works"
    if sum(map(len, versions.values())) == 1:
        key += "-once"
    ranges = [range_of(frame, name, of_name) for name, of_name in versions.items()]
    return frame.words(key, range=frame.words("site.comma").join(ranges))


def names_for(frame: Frame, view: ArticleView) -> list[str]:
    """The distributions whose versions tell what was tried.

    Those that the article claims something about come first.
    """
    claimed = (name for alternative in view.article.matter.affected for name in alternative)
    names = dict.fromkeys((*claimed, *view.article.matter.needs, *frame.model.headline))
    return [name for name in names if name not in MACHINE and not name.startswith(PROGRAM)]


def versions_of(toolchains: Sequence[Toolchain], names: Sequence[str]) -> dict[str, list[str]]:
    """Name → the versions of it, from old to new, without their local parts.

    A toolchain counts for the first of the names that it has, or for its Python.
    """
    versions: dict[str, set[str]] = {}
    for toolchain in toolchains:
        name = next((name for name in names if toolchain.version(name)), "")
        version = toolchain.version(name) if name else toolchain.python
        versions.setdefault(name or "Python", set()).add(str(version).partition("+")[0])
    order = [name for name in (*names, "Python") if name in versions]
    return {name: sorted(versions[name], key=_comparable) for name in order}


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


def _comparable(version: str) -> Version:
    try:
        return Version(version)
    except InvalidVersion:
        return Version("0")
