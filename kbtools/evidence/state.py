"""What follows for an article from its evidence: computed, never stored."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from kbtools.articles.model import ABSENT, Affected, Article, Role, Snippet
from kbtools.config import Config
from kbtools.evidence import store
from kbtools.evidence.rows import Row
from kbtools.evidence.verdicts import Verdict, VerdictName, expect, judge
from kbtools.toolchains.affected import parse_range
from kbtools.toolchains.model import Toolchain


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
    """Every row that counts for an article, judged against its claims of today.

    Raises:
        EvidenceError: the article's evidence cannot be read.
    """
    return judge_rows(article, store.read(config.evidence, article.id))


def judge_rows(article: Article, rows: tuple[Row, ...]) -> tuple[Observation, ...]:
    """The rows that count for an article, judged against its claims of today."""
    # a row is evidence that its toolchain ran the snippet, so it was the one of `toolchain=`
    return tuple(
        Observation(snippet, row, judge(article, snippet, expected, row.outcome))
        for snippet in article.snippets
        for row in store.of_snippet(rows, snippet)
        for expected in [expect(snippet, row.toolchain, snippet.keys.toolchain)]
    )


def state_of(article: Article, config: Config) -> ArticleState:
    """The state of an article.

    Raises:
        EvidenceError: the article's evidence cannot be read.
    """
    return state_from(article, observations(article, config))


def state_from(article: Article, observations: Sequence[Observation]) -> ArticleState:
    """The state that follows from observations, all or a part of those of the article."""
    verdicts = [observation.verdict for observation in observations]
    names = {verdict.name for verdict in verdicts}
    red = sum(verdict.colour == "red" for verdict in verdicts)
    if article.matter.retired:
        word = "retired"
    elif red:
        word = "contradicted"
    else:
        order = (VerdictName.REPRODUCED, VerdictName.RESOLVED, VerdictName.HOLDS)
        word = next((str(name) for name in order if name in names), "not run")
    snippets = {observation.snippet.id for observation in observations}
    toolchains = {observation.row.toolchain.identity for observation in observations}
    return ArticleState(
        word=word,
        green=sum(verdict.colour == "green" for verdict in verdicts),
        red=red,
        not_run=len(article.snippets) - len(snippets),
        toolchains=len(toolchains),
    )


def is_decided_by_version(article: Article, observations: Iterable[Observation]) -> bool:
    """Whether the failure occurs on some versions only, as claimed or as seen.

    So says a claim with an upper end, or a run of a repro that passes where the article is not
    affected. A claim as `>=2.4` alone does not: below 2.4 nobody may have tried.

    Args:
        article: The article.
        observations: Those of the article.
    """
    return has_end(article.matter.affected) or bool(
        article.matter.affected
        and any(
            observation.verdict.name is VerdictName.RESOLVED
            and observation.snippet.role is Role.REPRO
            and observation.snippet.keys.affected is None
            for observation in observations
        )
    )


def has_end(affected: Affected) -> bool:
    """Whether a range of a claim ends, or leaves versions out."""
    return any(
        text == ABSENT or any(part.operator not in (">=", ">") for part in parse_range(text))
        for alternative in affected
        for text in alternative.values()
    )


def where(observation: Observation, headline: Sequence[str]) -> str:
    """The software; the GPU, if the snippet used one; what the snippet was compiled for.

    `headline` has the names of the packages that toolchains are named by.
    """
    machine = ran_on(observation.row.toolchain, headline, on_gpu=observation.snippet.gpus > 0)
    return "; ".join(filter(None, (machine, observation.row.outcome.where)))


def ran_on(toolchain: Toolchain, headline: Sequence[str], *, on_gpu: bool) -> str:
    """The software, and the GPU if one was used: one that was only there did not run anything.

    Args:
        toolchain: What is installed, and the machine that it is on.
        headline: The names of the packages that toolchains are named by; `gpus` among them if the
            GPU is to be named.
        on_gpu: Whether what was run there used a GPU.
    """
    if on_gpu or "gpus" not in headline:
        return toolchain.label(headline)
    return f"{toolchain.software(headline)}, no GPU used"
