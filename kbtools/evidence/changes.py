"""What changed between two states of the evidence, going by the claims of today."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from kbtools.articles import links
from kbtools.articles.model import Article, Role
from kbtools.articles.replies import command_for_strangers
from kbtools.config import Config
from kbtools.evidence.rows import Row
from kbtools.evidence.state import Observation, judge_rows, where
from kbtools.evidence.verdicts import VerdictName

KINDS = {
    "stopped-working": "what helped does not help any more",
    "untrue": "a statement does not hold where the article says that it does",
    "too-narrow": "a statement holds where the article says that it does not",
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
    """The changes of every article that has any and is not retired.

    Args:
        before: Id of an article → its rows at the earlier time.
        after: The same, at the later time.
        articles: The articles as they are today, whose claims judge the rows of both times.
        headline: Names of the packages that toolchains are named by.
    """
    changed = []
    for article in articles:
        earlier = judge_rows(article, before.get(article.id, ()))
        later = judge_rows(article, after.get(article.id, ()))
        changes = tuple(_changes(earlier, later, headline))
        if changes and not article.matter.retired:
            standing = tuple(
                _change(observation, "", _kind(observation), headline)
                for observation in later
                if observation.verdict.colour == "red"
            )
            changed.append(ArticleChanges(article.id, changes, standing))
    return tuple(changed)


def _changes(
    earlier: Sequence[Observation], later: Iterable[Observation], headline: Sequence[str]
) -> Iterator[VerdictChange]:
    """Every verdict that became red, became red in another way, or is well again."""
    by_identity = {_key(old, old.row.toolchain.identity): old for old in earlier}
    # a compiler or a C library was updated: to a person it is the same toolchain
    by_label = {_key(old, old.row.toolchain.label(headline)): old for old in earlier}
    for new in later:
        toolchain = new.row.toolchain
        old = by_identity.get(_key(new, toolchain.identity))
        old = old or by_label.get(_key(new, toolchain.label(headline)))
        before = old.verdict if old else None
        is_red = new.verdict.colour == "red"
        if is_red and (before is None or before.name != new.verdict.name):
            yield _change(new, str(before.name) if before else "", _kind(new), headline)
        elif before and before.colour == "red" and new.verdict.colour == "green":
            yield _change(new, str(before.name), "well-again", headline)


def _key(observation: Observation, toolchain: str) -> tuple[str, str]:
    return observation.row.code, toolchain


def _kind(observation: Observation) -> str:
    verdict = observation.verdict.name
    if verdict is VerdictName.REGRESSED:
        return "came-back"
    if verdict is VerdictName.NOT_REPRODUCED:
        return "fix-arrived" if observation.snippet.role is Role.REPRO else "now-helps"
    if verdict in (VerdictName.UNTRUE, VerdictName.TOO_NARROW):
        return str(verdict)
    return "stopped-working" if verdict is VerdictName.BROKEN else "fails-otherwise"


def _change(
    observation: Observation, before: str, kind: str, headline: Sequence[str]
) -> VerdictChange:
    return VerdictChange(
        article=observation.snippet.article,
        snippet=observation.snippet.id,
        role=observation.snippet.role,
        kind=kind,
        before=before,
        after=str(observation.verdict.name),
        where=where(observation, headline),
        when=f"{observation.row.when:%Y-%m-%d}",
        reason=observation.verdict.reason,
        toolchain=observation.row.toolchain.brief(headline),
    )


def line(change: VerdictChange) -> str:
    """A change on one line."""
    before = change.before or "not run"
    return (
        f"{change.article}/{change.snippet} ({change.role}): {before} → {change.after}"
        f" on {change.where}, {change.when}: {KINDS[change.kind]}"
    )


def headline(changes: Iterable[VerdictChange]) -> str:
    """The change that weighs most, and where, in a few words."""
    order = list(KINDS)
    first = min(
        changes, key=lambda change: (order.index(change.kind), change.snippet, change.toolchain)
    )
    return f"{KINDS[first.kind]} ({first.toolchain})"


def replies(article: Article, changes: Iterable[VerdictChange], config: Config) -> Iterator[str]:
    """A comment for each upstream thread that a change may be news for, to be read and sent.

    Args:
        article: The article that the changes are of.
        changes: All changes; those that matter to no upstream thread are left out.
        config: Name and address of the knowledge base.
    """
    lines = [f"- {_news(change)}" for change in changes if change.kind in _NEWS]
    if not lines:
        return
    threads = [thread for thread in article.matter.upstream if thread.kind in ("report", "fix")]
    link = links.markdown(article.matter, config.knowledge_base.url)
    for reference in dict.fromkeys(thread.reference for thread in threads):
        comment = [f"News of {link}, which is about this thread:", "", *lines, ""]
        command = command_for_strangers(article.id, config.knowledge_base)
        trial = f" To try it on your machine: `{command}`." if command else ""
        comment.append(f"Each line was executed, with dated evidence.{trial}")
        address = links.upstream_url(reference)
        yield f"For {reference} ({address}):\n\n" + "\n".join(comment) + "\n"


_NEWS = {
    "came-back": "the failure is seen again",
    "fix-arrived": "the failure is not seen any more",
    "stopped-working": "the {role} does not work any more",
}
"""Kinds of changes that upstream threads are told of → what they are told."""


def _news(change: VerdictChange) -> str:
    text = _NEWS[change.kind].format(role=change.role)
    return f"{text} with {change.where} (`{change.snippet}`, {change.when})"
