"""The strip of versions at the head of an article: where its failure was seen, and where not."""

from __future__ import annotations

from collections.abc import Sequence

from packaging.version import InvalidVersion, Version

from kbtools.articles.model import ABSENT
from kbtools.articles.needs import PROGRAM
from kbtools.evidence.board import BLANK, CONTRADICTED, FAILS, REPORTED, WORKS, Cell
from kbtools.site.model import ArticleView
from kbtools.site.pages.frame import Frame
from kbtools.site.pages.marks import Mark, of_cell
from kbtools.toolchains.model import MACHINE, Toolchain

RANK = (CONTRADICTED, FAILS, WORKS, REPORTED, BLANK)


def names_of(view: ArticleView) -> list[str]:
    """What the article's claim is about: the names in its `affected`.

    Where no version decides, they are what its snippets need: its claim is about all versions.
    """
    matter = view.article.matter
    named = (
        name
        for alternative in matter.affected
        for name, text in alternative.items()
        if text != ABSENT  # what has to be missing has no version to be shown
    )
    needed = (name for name in matter.needs if not name.startswith(PROGRAM))
    return list(dict.fromkeys(named if matter.affected else needed))


def strip(frame: Frame, view: ArticleView, cells: Sequence[Cell]) -> list[Mark]:
    """The cells of the strip: the versions with evidence, from old to new.

    Toolchains with the same versions of what the claim is about share a cell while they agree;
    where one was seen to fail and another not to, each has its own.

    Args:
        frame: The page that it is for.
        view: The article with its evidence.
        cells: The article's cells of the board, one for each toolchain.
    """
    names, headline = names_of(view), frame.model.headline
    distributions = [name for name in headline if name not in MACHINE]
    common = {toolchain.identity for toolchain in frame.model.common}
    groups: dict[str, list[tuple[Toolchain, Cell]]] = {}
    for toolchain, cell in zip(frame.model.toolchains, cells, strict=True):
        label = label_of(toolchain, names, headline)
        partly = any(toolchain.version(name) is None for name in names)  # no GPU, and a claim on sm
        if label and (cell.mark or not partly) and (cell.verdicts or toolchain.identity in common):
            groups.setdefault(label, []).append((toolchain, cell))
    marks = []
    ordered = sorted(
        groups.items(),
        key=lambda group: _versions(group[1][0][0], names or [*distributions, "python"]),
    )
    for label, members in ordered:
        measured = {cell.mark for _, cell in members} & {FAILS, WORKS, CONTRADICTED}
        if len(measured) > 1:
            parts = [
                (f"{label}, {_apart(view, toolchain, headline)}", toolchain, cell)
                for toolchain, cell in members
                if cell.mark
            ]
        else:
            toolchain, cell = min(members, key=lambda member: RANK.index(member[1].mark))
            parts = [(label, toolchain, cell)]
        for text, toolchain, cell in parts:
            mark = of_cell(frame, view, cell, toolchain)
            marks.append(Mark(mark.sign, mark.kind, mark.words, mark.url, text))
    if view.article.matter.affected:
        return marks
    return [mark for mark in marks if mark.sign]  # without a claim, blank cells say nothing


def label_of(toolchain: Toolchain, names: Sequence[str], headline: Sequence[str]) -> str:
    """The versions of these, without their local parts; empty where one is not there.

    Args:
        toolchain: The one to name.
        names: Distributions whose versions are shown, in this order.
        headline: Distributions that a toolchain is named by where `names` is empty.
    """
    if not names:
        return toolchain.brief(headline)
    versions = [(name, toolchain.version(name)) for name in names]
    packages = [(name, version) for name, version in versions if name not in MACHINE]
    if any(version is None for _, version in packages) or not any(v for _, v in versions):
        return ""
    texts = [(version or "–").partition("+")[0] for _, version in versions]
    return (
        " · ".join(f"{n} {v}" for n, v in zip(names, texts, strict=True)) if names[1:] else texts[0]
    )


def _apart(view: ArticleView, toolchain: Toolchain, headline: Sequence[str]) -> str:
    observed = view.by_toolchain.get(toolchain.identity, ())
    on_gpu = toolchain.gpus and any(observation.snippet.gpus for observation in observed)
    gpu = toolchain.gpus[0].name if on_gpu else f"Python {toolchain.python}"
    return f"{toolchain.brief(headline)}, {gpu}"


def _versions(toolchain: Toolchain, names: Sequence[str]) -> list[Version]:
    versions = []
    for name in names:
        try:
            versions.append(Version(toolchain.version(name) or "0"))
        except InvalidVersion:
            versions.append(Version("0"))
    return versions
