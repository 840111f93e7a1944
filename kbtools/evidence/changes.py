"""What changed between two states of the evidence, going by the claims of today."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from kbtools.articles import links
from kbtools.articles.model import Article, Role
from kbtools.config import Config
from kbtools.evidence.state import Observation, judge_rows, where
from kbtools.evidence.store import Row
from kbtools.evidence.verdicts import VerdictName

KINDS = {
    "stopped-working": "what helped does not help any more",
    "came-back": "a failure came back",
    "fix-arrived": "a failure is gone where the article says that it is there",
    "now-helps": "advice that did not help now does",
    "fails-otherwise": "it fails in another way than the article says",
    "well-again": "what contradicted the article is gone",
}
"""What a change is, in words; the first ones weigh most."""


class VerdictChange(msgspec.Struct, frozen=True):
    """A snippet whose verdict on a toolchain is not what it was."""

    article: str
    snippet: str
    """As in `f1`."""
    role: Role
    kind: str
    """One of `KINDS`."""
    before: str
    """The verdict; empty where it was not run there."""
    after: str
    where: str
    when: str
    """As in `2026-11-21`."""
    reason: str
    toolchain: str
    """What matters most of it, as in `torch 2.8.0`."""


class ArticleChanges(msgspec.Struct, frozen=True):
    """What changed for an article, and what is contradicted of it now."""

    article: str
    changes: tuple[VerdictChange, ...]
    standing: tuple[VerdictChange, ...]
    """Every claim that is contradicted now, whether that is new or not."""


def changes_between(
    before: dict[str, tuple[Row, ...]],
    after: dict[str, tuple[Row, ...]],
    articles: Iterable[Article],
    headline: Sequence[str],
) -> tuple[ArticleChanges, ...]:
    """What changed for each article of which anything did, given its rows then and now."""
    found = []
    for article in articles:
        then = judge_rows(article, before.get(article.id, ()))
        now = judge_rows(article, after.get(article.id, ()))
        changes = tuple(_changes(then, now, headline))
        if changes and not article.matter.retired:
            red = [one for one in now if one.verdict.colour == "red"]
            standing = tuple(_change(one, "", _kind(one), headline) for one in red)
            found.append(ArticleChanges(article.id, changes, standing))
    return tuple(found)


def _changes(
    then: Iterable[Observation], now: Iterable[Observation], headline: Sequence[str]
) -> Iterator[VerdictChange]:
    """Whatever became red, became red in another way, or is well again."""
    known = {_key(one, one.row.toolchain.identity): one for one in then}
    # a compiler or a C library was updated: to a person it is the same toolchain
    alike = {_key(one, one.row.toolchain.label(headline)): one for one in then}
    for one in now:
        same = known.get(_key(one, one.row.toolchain.identity))
        same = same or alike.get(_key(one, one.row.toolchain.label(headline)))
        before = same.verdict if same else None
        red = one.verdict.colour == "red"
        if red and (before is None or before.name != one.verdict.name):
            yield _change(one, str(before.name) if before else "", _kind(one), headline)
        elif before and before.colour == "red" and one.verdict.colour == "green":
            yield _change(one, str(before.name), "well-again", headline)


def _key(one: Observation, toolchain: str) -> tuple[str, str]:
    return one.row.code, toolchain


def _kind(one: Observation) -> str:
    if one.verdict.name is VerdictName.REGRESSED:
        return "came-back"
    if one.verdict.name is VerdictName.NOT_REPRODUCED:
        return "fix-arrived" if one.snippet.role is Role.REPRO else "now-helps"
    return "stopped-working" if one.verdict.name is VerdictName.BROKEN else "fails-otherwise"


def _change(one: Observation, before: str, kind: str, headline: Sequence[str]) -> VerdictChange:
    return VerdictChange(
        article=one.snippet.article,
        snippet=one.snippet.id,
        role=one.snippet.role,
        kind=kind,
        before=before,
        after=str(one.verdict.name),
        where=where(one, headline),
        when=f"{one.row.when:%Y-%m-%d}",
        reason=one.verdict.reason,
        toolchain=one.row.toolchain.brief(headline),
    )


def line(one: VerdictChange) -> str:
    """A change on one line."""
    before = one.before or "not run"
    return (
        f"{one.article}/{one.snippet} ({one.role}): {before} → {one.after} on {one.where},"
        f" {one.when}: {KINDS[one.kind]}"
    )


def headline(changes: Iterable[VerdictChange]) -> str:
    """The change that weighs most, and where, in a few words."""
    order = list(KINDS)
    first = min(changes, key=lambda one: (order.index(one.kind), one.snippet, one.toolchain))
    return f"{KINDS[first.kind]} ({first.toolchain})"


def replies(article: Article, changes: Iterable[VerdictChange], config: Config) -> Iterator[str]:
    """A comment for each upstream thread that a change may be news for, to be read and sent."""
    told = [one for one in changes if one.kind in ("came-back", "fix-arrived", "stopped-working")]
    threads = [one for one in article.matter.upstream if one.kind in ("report", "fix")]
    if not told:
        return
    link = links.markdown(article.matter, config.knowledge_base.url)
    seen = [f"- {_said(one)}" for one in told]
    for thread in dict.fromkeys(one.reference for one in threads):
        lines = [f"News of {link}, which is about this thread:", "", *seen, ""]
        lines.append(
            "Each line was executed, with dated evidence; to try it on your machine:"
            f" `kbtools verify {article.id}` ({config.knowledge_base.name})."
        )
        yield f"For {thread} ({links.upstream_url(thread)}):\n\n" + "\n".join(lines) + "\n"


def _said(one: VerdictChange) -> str:
    what = {
        "came-back": "the failure is seen again",
        "fix-arrived": "the failure is not seen any more",
        "stopped-working": f"the {one.role} does not work any more",
    }[one.kind]
    return f"{what} with {one.where} (`{one.snippet}`, {one.when})"
