"""The board, articles × toolchains, from evidence alone: measured, reported, or blank."""

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
    """A cell for each article and toolchain."""

    toolchains: tuple[Toolchain, ...]
    rows: tuple[tuple[str, tuple[Cell, ...]], ...]
    """Id of an article, and its cells in the order of the toolchains."""
    headline: tuple[str, ...] = ()
    """The distributions by which its toolchains are named."""


def build_board(articles: Iterable[Article], config: Config) -> Board:
    """The board of these articles, and of every toolchain on which any of them was run."""
    observed = [(article, observations(article, config)) for article in articles]
    by_identity = {
        observation.row.toolchain.identity: observation.row.toolchain
        for _, of_article in observed
        for observation in of_article
    }
    toolchains = sort_toolchains(by_identity.values(), config)
    rows = tuple(
        (article.id, tuple(cell_of(article, toolchain, of_article) for toolchain in toolchains))
        for article, of_article in observed
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


def cell_of(article: Article, toolchain: Toolchain, observations: Sequence[Observation]) -> Cell:
    """What is known of an article on one toolchain.

    Args:
        article: The article.
        toolchain: The toolchain.
        observations: Those of the article, on this and on any other toolchain.
    """
    observed = [
        observation
        for observation in observations
        if observation.row.toolchain.identity == toolchain.identity
    ]
    if not observed:
        reported = bool(article.matter.affected) and (
            is_affected(article.matter.affected, toolchain) is True
        )
        return Cell(REPORTED if reported else BLANK)
    verdicts = {observation.snippet.id: str(observation.verdict.name) for observation in observed}
    targets = {target for observation in observed for target in observation.row.outcome.targets}
    newest = max(observation.row.when for observation in observed)
    return Cell(_mark(observed), verdicts, newest, tuple(sorted(targets)))


def _mark(observed: Sequence[Observation]) -> str:
    if any(observation.verdict.colour == "red" for observation in observed):
        return CONTRADICTED
    # a repro with an `affected` of its own says nothing of the article's range
    repros = [
        observation.verdict.name
        for observation in observed
        if observation.snippet.role is Role.REPRO and observation.snippet.keys.affected is None
    ]
    if "reproduced" in repros:
        return FAILS
    return WORKS if "resolved" in repros else BLANK
