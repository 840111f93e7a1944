"""What follows for an article from its evidence: computed, never stored."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from kbtools.articles.model import Article, Snippet
from kbtools.config import Config
from kbtools.evidence import store
from kbtools.evidence.store import Row
from kbtools.evidence.verdicts import Verdict, VerdictName, expect, judge


class Observation(msgspec.Struct, frozen=True):
    """A snippet, a row that counts for it, and the verdict that follows today."""

    snippet: Snippet
    row: Row
    verdict: Verdict


class ArticleState(msgspec.Struct, frozen=True):
    """What is known of an article.

    `word` is `retired`, `contradicted` (some claim is red), `reproduced` (its failure was seen),
    `resolved` (its failure was only seen not to happen, as claimed), `holds` (only fixes were
    seen) or `not run`.
    """

    word: str
    green: int
    red: int
    not_run: int
    """Snippets with no evidence for the code they have now."""
    toolchains: int


def observations(article: Article, config: Config) -> tuple[Observation, ...]:
    """Every row that counts for an article, judged against its claims of today."""
    return judge_rows(article, store.read(config.evidence, article.id))


def judge_rows(article: Article, rows: tuple[Row, ...]) -> tuple[Observation, ...]:
    """Those of some rows that count for an article, judged against its claims of today."""
    # a row is there because it was run: whatever toolchain `toolchain=` asked for, it was that one
    return tuple(
        Observation(snippet, row, judge(article, snippet, expected, row.outcome))
        for snippet in article.snippets
        for row in store.of_snippet(rows, snippet)
        for expected in [expect(snippet, row.toolchain, snippet.keys.toolchain)]
    )


def state_of(article: Article, config: Config) -> ArticleState:
    """The state of an article."""
    return state_from(article, observations(article, config))


def state_from(article: Article, found: Sequence[Observation]) -> ArticleState:
    """The state that follows from what was seen, or from a part of it."""
    names = {one.verdict.name for one in found}
    red = sum(one.verdict.colour == "red" for one in found)
    if article.matter.retired:
        word = "retired"
    elif red:
        word = "contradicted"
    else:
        order = (VerdictName.REPRODUCED, VerdictName.RESOLVED, VerdictName.HOLDS)
        word = next((str(name) for name in order if name in names), "not run")
    return ArticleState(
        word=word,
        green=sum(one.verdict.colour == "green" for one in found),
        red=red,
        not_run=len(article.snippets) - len({one.snippet.id for one in found}),
        toolchains=len({one.row.toolchain.identity for one in found}),
    )


def where(one: Observation, headline: Sequence[str]) -> str:
    """The software; the GPU if the snippet used one; what it compiled for."""
    toolchain = one.row.toolchain
    ran_on = (
        toolchain.label(headline)
        if one.snippet.gpus
        else f"{toolchain.software(headline)}, no GPU used"
    )
    return "; ".join(filter(None, (ran_on, one.row.outcome.where)))
