"""An article as one Markdown document: its text, its state and its evidence.

`kbtools explain`, the MCP server and the site all print this document.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import starmap

import msgspec

from kbtools.articles import links
from kbtools.articles.model import Article
from kbtools.articles.needs import in_words
from kbtools.articles.receipt_grammar import Kind
from kbtools.articles.receipts import address_of, name_of, receipts_in
from kbtools.config import Config
from kbtools.evidence.scope import scope_of
from kbtools.evidence.state import Observation, state_from, where


class Wording(msgspec.Struct, frozen=True):
    """The text of an article in one language."""

    title: str
    summary: str
    body: str
    """Markdown below the front matter."""
    language: str = ""
    """As in the addresses of pages: empty for the first language of the knowledge base."""


def article_markdown(
    article: Article,
    observations: Sequence[Observation],
    config: Config,
    wording: Wording | None = None,
    *,
    every_row: bool = True,
) -> str:
    """An article as a Markdown document.

    Args:
        article: The original.
        observations: The rows that count for the article, with today's verdicts.
        config: Of the knowledge base. If it has no address, the document has no link to its page.
        wording: Title, summary and body in another language; by default those of `article`.
        every_row: Whether each run has a row; else each snippet and verdict has one.
    """
    matter = article.matter
    text = wording or Wording(matter.title, matter.summary, article.body)
    lines = [f"# {article.id}: {_line(text.title)}", "", f"**{_line(text.summary)}**", ""]
    if matter.retired:
        lines += [f"Retired since {matter.retired.since}: {_line(matter.retired.reason)}", ""]
    headline = config.toolchain.headline
    facts = _facts(article, observations, headline)
    lines += [f"- {name}: {value}" for name, value in facts.items()]
    if site := config.knowledge_base.url:
        lines.append(f"- Page: {links.url(article.id, site, text.language)}")
    lines += ["", text.body.strip(), "", "## Evidence", ""]
    lines += ["| snippet | verdict | toolchain | day |", "| --- | --- | --- | --- |"]
    groups = [[observation] for observation in observations] if every_row else _alike(observations)
    lines += [_row(group, headline) for group in groups] or ["| | not run | | |"]
    lines += _receipts(article, text.body, config.knowledge_base.url)
    if matter.upstream:
        lines += ["", "## Upstream", ""]
    lines += [
        f"- {thread.kind}, {thread.basis}: {links.upstream_url(thread.reference)}"
        for thread in matter.upstream
    ]
    return "\n".join(lines) + "\n"


def _receipts(article: Article, body: str, site: str) -> list[str]:
    """A section that says where the receipts of a text lead; nothing where it has none."""
    receipts = receipts_in(body)
    lines = ["", "## Receipts", ""] if receipts else []
    for receipt in receipts:
        address = address_of(receipt, article.id)
        if receipt.kind is Kind.SNIPPET:
            name = name_of(receipt, article.id)
            address = f"the runs of {name}" + (f", {site.rstrip('/')}/{address}" if site else "")
        lines.append(f"- [{receipt.text}]: {address or 'an inference'}")
    return lines


def _facts(
    article: Article, observations: Sequence[Observation], headline: Sequence[str]
) -> dict[str, str]:
    state, matter = state_from(article, observations), article.matter
    ranges = [
        " and ".join(f"{name} {versions}" for name, versions in alternative.items())
        for alternative in matter.affected
    ]
    needs = _line(", ".join(starmap(in_words, matter.needs.items())))
    return {
        "State": f"{state.word}; {state.green} claims seen to hold, {state.red} contradicted, "
        f"{state.not_run} snippets not run since they were edited",
        **({"Needs, to be run": needs} if needs else {}),
        "Affected": _line(" or ".join(ranges)) or "every toolchain",
        **_scope(article, observations, headline),
        "Components": ", ".join(matter.components),
        "Stage": matter.stage,
        "Severity": matter.severity,
    }


def _scope(
    article: Article, observations: Sequence[Observation], headline: Sequence[str]
) -> dict[str, str]:
    """What a sentence speaks of that names no release and no GPU."""
    scope = scope_of(article, observations, headline)
    if scope is None:
        return {}
    ranges = [
        f"{name} {versions[0]}" + (f" to {versions[-1]}" if len(versions) > 1 else "")
        for name, versions in scope.versions.items()
    ]
    of_gpus = () if scope.gpus is None else scope.gpus or ("no GPU",)
    unnamed = "no release" if scope.gpus is None else "no release and no GPU"
    return {
        "Was run with": _line(f"{', '.join(ranges)}; {', '.join((*of_gpus, *scope.platforms))}. ")
        + f" A sentence that names {unnamed} speaks of these."
    }


def _alike(observations: Sequence[Observation]) -> list[list[Observation]]:
    """The rows of each snippet and verdict, in the order of the first of each."""
    groups: dict[tuple[str, str], list[Observation]] = {}
    for observation in observations:
        key = (observation.snippet.id, observation.verdict.name)
        groups.setdefault(key, []).append(observation)
    return list(groups.values())


def _row(group: Sequence[Observation], headline: Sequence[str]) -> str:
    """A row for runs of one snippet with one verdict: the last of them, and how many others."""
    newest = max(group, key=lambda observation: observation.row.when)
    snippet, day = newest.snippet, f"{newest.row.when:%Y-%m-%d}"
    toolchain = _line(where(newest, headline))
    toolchain += f"; and {len(group) - 1} more" if len(group) > 1 else ""
    return f"| {snippet.id} ({snippet.role}) | {newest.verdict.name} | {toolchain} | {day} |"


def _line(text: str) -> str:
    """A text on one line that does not end a cell of a table."""
    return " ".join(text.split()).replace("|", "\\|")
