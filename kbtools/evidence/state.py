"""What follows for an article from its evidence: computed, never stored."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from kbtools.articles.model import Article, Snippet
from kbtools.config import Config
from kbtools.evidence import store
from kbtools.evidence.store import Row
from kbtools.evidence.verdicts import Verdict, VerdictName, expect, judge


class Seen(msgspec.Struct, frozen=True):
    """A snippet, a row that counts for it, and the verdict that follows today."""

    snippet: Snippet
    row: Row
    verdict: Verdict


class State(msgspec.Struct, frozen=True):
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


def seen(article: Article, config: Config) -> tuple[Seen, ...]:
    """Every row that counts for an article, judged against its claims of today."""
    return judged(article, store.read(config.evidence, article.id))


def judged(article: Article, rows: tuple[Row, ...]) -> tuple[Seen, ...]:
    """Those of some rows that count for an article, judged against its claims of today."""
    # a row is there because it was run: whatever toolchain `toolchain=` asked for, it was that one
    return tuple(
        Seen(snippet, row, judge(article, snippet, expected, row.outcome))
        for snippet in article.snippets
        for row in store.of_snippet(rows, snippet)
        for expected in [expect(snippet, row.toolchain, snippet.keys.toolchain)]
    )


def state_of(article: Article, config: Config) -> State:
    """The state of an article."""
    return state_from(article, seen(article, config))


def state_from(article: Article, found: Sequence[Seen]) -> State:
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
    return State(
        word=word,
        green=sum(one.verdict.colour == "green" for one in found),
        red=red,
        not_run=len(article.snippets) - len({one.snippet.id for one in found}),
        toolchains=len({one.row.toolchain.identity for one in found}),
    )


def where(one: Seen) -> str:
    """What was there: the software; the GPU where the snippet used one; what it compiled for."""
    toolchain = one.row.toolchain
    ran_on = toolchain.label if one.snippet.gpus else f"{toolchain.software}, no GPU used"
    return "; ".join(filter(None, (ran_on, one.row.outcome.where)))


def as_markdown(article: Article, config: Config, body: str | None = None) -> str:
    """An article as a page of Markdown: title, state, text (or `body` in its place), evidence."""
    state, matter = state_of(article, config), article.matter
    lines = [f"# {article.id}: {matter.title}", "", f"**{matter.summary}**", ""]
    lines += [
        f"State: {state.word}. {state.green} claim{'s' * (state.green != 1)} seen to hold, "
        f"{state.red} contradicted, "
        f"{state.not_run} snippet{'s' * (state.not_run != 1)} not run since edited.",
        "",
        body or article.body,
        "## Evidence",
        "",
        "| snippet | verdict | toolchain | when |",
        "| --- | --- | --- | --- |",
    ]
    lines += [
        f"| {one.snippet.id} ({one.snippet.role}) | {one.verdict.name} "
        f"| {where(one)} | {one.row.when:%Y-%m-%d} |"
        for one in seen(article, config)
    ]
    lines += ["", "## Upstream", ""]
    lines += [f"- {one.kind}: {one.reference} ({one.basis})" for one in matter.upstream]
    return "\n".join(lines) + "\n"
