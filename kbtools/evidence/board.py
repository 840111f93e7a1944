"""Articles × toolchains, from evidence alone: measured, reported, or blank. Never a guess."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Sequence

import msgspec

from kbtools.articles.model import Article, Role
from kbtools.config import Config
from kbtools.evidence.state import Observation, observations
from kbtools.toolchains.affected import is_affected
from kbtools.toolchains.model import Toolchain

FAILS, WORKS, REPORTED, CONTRADICTED, BLANK = "✗", "✓", "r", "!", ""


class Cell(msgspec.Struct, frozen=True):
    """What is known of an article on a toolchain.

    `mark` is `✗` (its failure was seen there), `✓` (its repro was seen to pass there), `!` (what
    was seen contradicts a claim), `r` (the article says that it fails there, and it was not run)
    or empty (nothing is known).
    """

    mark: str
    verdicts: dict[str, str] = {}
    """Snippet → verdict, of everything that was run there."""
    when: datetime.datetime | None = None
    """Of the newest run."""
    compiled_for: tuple[str, ...] = ()
    """Architectures that snippets were compiled for there. Compiled for is not ran on."""


class Board(msgspec.Struct, frozen=True):
    """The whole board; the cells of a row stand in the order of the toolchains."""

    toolchains: tuple[Toolchain, ...]
    rows: tuple[tuple[str, tuple[Cell, ...]], ...]
    headline: tuple[str, ...] = ()
    """The distributions by which its toolchains are named."""


def build_board(articles: Iterable[Article], config: Config) -> Board:
    """The board of these articles, and of every toolchain on which any of them was run."""
    found = [(article, observations(article, config)) for article in articles]
    known = {one.row.toolchain.identity: one.row.toolchain for _, all_ in found for one in all_}
    toolchains = sort_toolchains(known.values(), config)
    rows = tuple(
        (article.id, tuple(cell_of(article, toolchain, all_) for toolchain in toolchains))
        for article, all_ in found
    )
    return Board(toolchains, rows, config.toolchain.headline)


def sort_toolchains(toolchains: Iterable[Toolchain], config: Config) -> tuple[Toolchain, ...]:
    """Toolchains without a GPU first, and each kind from old to new."""
    from packaging.version import Version

    headline = config.toolchain.headline

    def key(toolchain: Toolchain) -> tuple[object, ...]:
        versions = [Version(toolchain.packages.get(name, "0")) for name in headline]
        return (bool(toolchain.gpus), *versions, toolchain.label(headline))

    return tuple(sorted(toolchains, key=key))


def cell_of(article: Article, toolchain: Toolchain, all_: Sequence[Observation]) -> Cell:
    """What is known of an article on one toolchain."""
    here = [one for one in all_ if one.row.toolchain.identity == toolchain.identity]
    if not here:
        reported = bool(article.matter.affected) and (
            is_affected(article.matter.affected, toolchain) is True
        )
        return Cell(REPORTED if reported else BLANK)
    # a repro with an `affected` of its own speaks of something else than the article's range
    repros = [
        one.verdict.name
        for one in here
        if one.snippet.role is Role.REPRO and one.snippet.keys.affected is None
    ]
    if any(one.verdict.colour == "red" for one in here):
        mark = CONTRADICTED
    elif "reproduced" in repros:
        mark = FAILS
    else:
        mark = WORKS if "resolved" in repros else BLANK
    verdicts = {one.snippet.id: str(one.verdict.name) for one in here}
    targets = {target for one in here for target in one.row.outcome.targets}
    return Cell(mark, verdicts, max(one.row.when for one in here), tuple(sorted(targets)))
