"""The bounds of what articles claim, each held to evidence on both of its sides."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Literal

import msgspec
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

from kbtools.articles.decoding import parse_affected
from kbtools.articles.model import ABSENT, Article, Role
from kbtools.articles.reported import ReportedBound
from kbtools.evidence.rows import Row
from kbtools.evidence.state import judge_rows
from kbtools.evidence.trials import (
    TWO_SIDED,
    ZERO,
    Claim,
    Trial,
    as_version,
    claims_of,
    own_range,
    trials,
)
from kbtools.toolchains.affected import parse_range, range_holds

Standing = Literal["measured", "reported", "open"]


class Step(msgspec.Struct, frozen=True):
    """Two versions tried, next to each other, between which what happens changes."""

    below: str
    above: str
    untried: tuple[str, ...] = ()
    """Releases between the two that other runs of the knowledge base know, from old to new."""


class Bound(msgspec.Struct, frozen=True):
    """A clause of a claimed range, and what stands behind it."""

    article: str
    snippet: str
    """Id of the snippet whose fence has the range; empty for the article's own."""
    alternative: int
    """Which of the alternatives of `affected` it is in, counted from 0."""
    name: str
    clause: str
    """As in `<2.6`, or `absent`."""
    standing: Standing
    """`measured`: runs on both sides; `reported`: a thread says so; `open`: neither."""
    steps: tuple[Step, ...] = ()
    """Where it was measured: one, or two for `==` and `!=`."""
    tried: tuple[Trial, ...] = ()
    """From old to new."""
    receipt: str = ""
    """Of a reported bound."""
    of_fact: bool = False
    """Whether it is of the range in which a fact holds, and not of one that is affected."""

    @property
    def text(self) -> str:
        """As in `torch<2.6`."""
        return f"{self.name} {ABSENT}" if self.clause == ABSENT else f"{self.name}{self.clause}"

    @property
    def span(self) -> str:
        """The versions tried, as in `tried from 2.5.1 to 2.15.0`."""
        if not self.tried:
            return "tried on none"
        first, last = self.tried[0].version, self.tried[-1].version
        return f"tried on {first}" if first == last else f"tried from {first} to {last}"

    @property
    def missing(self) -> str:
        """Which run would measure it, in words; empty where runs did."""
        if self.steps:
            return ""
        sides = {holds for _, holds in _sides(self.clause, self.tried)}
        inside, outside = _sides_in_words(self.name, self.clause)
        as_said, otherwise = ("passes", "fails") if self.of_fact else ("fails", "passes")
        parts = []
        if True not in sides:
            parts.append(f"a run that {as_said} {inside}")
        if False not in sides:
            parts.append(f"a run that {otherwise} {outside}")
        return " and ".join(parts)


IN_WORDS = {
    "<": ("below {}", "from {} on"),
    ">=": ("from {} on", "below {}"),
    "<=": ("up to {}", "above {}"),
    ">": ("above {}", "up to {}"),
}
"""Operator of a clause → where it holds, and where it does not."""


def _sides_in_words(name: str, clause: str) -> tuple[str, str]:
    if clause == ABSENT:
        return f"without {name}", f"with {name}"
    [part] = SpecifierSet(clause)
    if part.operator in IN_WORDS:
        inside, outside = IN_WORDS[part.operator]
        return inside.format(f"{name} {part.version}"), outside.format(f"{name} {part.version}")
    return f"on {name}{clause}", f"on a {name} that is not {clause}"


def bounds_of(
    article: Article, rows: tuple[Row, ...], releases: Mapping[str, Sequence[str]]
) -> tuple[Bound, ...]:
    """Every bound of an article, in the order in which the article states them.

    Args:
        article: The article; one that is retired claims nothing any more, and of one with a text
            that is no range nothing can be said: KB103 reports it.
        rows: All rows of its evidence. Those of code that was edited since do not count.
        releases: Distribution → its releases that any run of the knowledge base knows.
    """
    if article.matter.retired or not has_bounds(article) or not _is_readable(article):
        return ()
    reported = {key_of(entry): entry for entry in article.matter.bounds}
    return tuple(
        bound
        for claim in claims_of(article, judge_rows(article, rows))
        for i, alternative in enumerate(claim.affected)
        for name in alternative
        for bound in _bounds_of_range(claim, i, name, reported, releases)
    )


def has_bounds(article: Article) -> bool:
    """Whether it, or a fence of it that can fail, claims a range."""
    fences = (snippet for snippet in article.snippets if snippet.role in TWO_SIDED)
    return bool(article.matter.affected) or any(map(own_range, fences))


def _is_readable(article: Article) -> bool:
    ranges = (article.matter.affected, *(snippet.affected for snippet in article.snippets))
    try:
        for alternative in (alternative for affected in ranges for alternative in affected):
            for text in alternative.values():
                clauses(text)
    except ValueError:
        return False
    return True


def key_of(entry: ReportedBound) -> tuple[str, str]:
    """Name and clause of an entry of `bounds`; the text itself where it is no bound."""
    try:
        [[(name, text)]] = [tuple(c.items()) for c in parse_affected(entry.bound)]
        [clause] = clauses(text)
    except ValueError:
        return "", entry.bound
    return str(canonicalize_name(name)), clause


def name_of(bound: Bound) -> str:
    """The name in a bound, as package indexes write it."""
    return str(canonicalize_name(bound.name))


def clauses(text: str) -> tuple[str, ...]:
    """The clauses of a range, as in `>=2.2` and `<3.0`, in the order of their versions.

    Raises:
        ValueError: it is not a range.
    """
    if text == ABSENT:
        return (ABSENT,)
    parts = list(parse_range(text))
    parts.sort(key=lambda part: (_bound(part.version), str(part)))
    return tuple(map(str, parts))


def releases_of(rows: Iterable[Row]) -> dict[str, tuple[str, ...]]:
    """Distribution → the releases of it that some toolchain had, from old to new."""
    versions_of: dict[str, set[Version]] = {}
    for packages in {row.toolchain.identity: row.toolchain.packages for row in rows}.values():
        for name, text in packages.items():
            version = as_version(text)
            if version and not version.is_prerelease:
                versions_of.setdefault(name, set()).add(Version(version.public))
    return {name: tuple(map(str, sorted(versions))) for name, versions in versions_of.items()}


def _bounds_of_range(
    claim: Claim,
    i: int,
    name: str,
    reported: Mapping[tuple[str, str], ReportedBound],
    releases: Mapping[str, Sequence[str]],
) -> Iterator[Bound]:
    """The bounds of one name in the alternative `i` of a claim."""
    text = claim.affected[i][name]
    tried = trials(claim, i, name)
    of_fact = any(s.role is Role.FACT for s in claim.article.snippets if s.id == claim.snippet)
    of_name = releases.get(str(canonicalize_name(name)), ())
    for clause in clauses(text):
        steps = _steps(clause, tried, of_name)
        entry = reported.get((str(canonicalize_name(name)), clause))
        standing: Standing = "measured" if steps else "reported" if entry else "open"
        receipt = entry.receipt if entry and not steps else ""
        place = (claim.article.id, claim.snippet, i, name, clause)
        yield Bound(*place, standing, steps, tried, receipt, of_fact)


def _steps(clause: str, tried: Sequence[Trial], releases: Sequence[str]) -> tuple[Step, ...]:
    """Where what happens changes at a clause, between versions that were tried.

    Args:
        clause: As in `<2.6`.
        tried: The versions of its distribution, from old to new.
        releases: The releases of the distribution that are known.
    """
    return tuple(
        Step(below, above, _between(below, above, tried, releases))
        for (below, below_holds), (above, above_holds) in pairwise(_sides(clause, tried))
        if below_holds != above_holds
    )


def _sides(clause: str, tried: Sequence[Trial]) -> list[tuple[str, bool]]:
    """The versions tried that bear on a clause, and whether it holds on each.

    A version that another clause of the range leaves out says nothing of this one.
    """
    sides = []
    for trial in tried:
        holds = trial.version == ABSENT if clause == ABSENT else _answer(clause, trial.version)
        if holds is not None and (trial.inside or holds is False):
            sides.append((trial.version, holds))
    return sides


def _between(
    below: str, above: str, tried: Sequence[Trial], releases: Sequence[str]
) -> tuple[str, ...]:
    """The releases between two versions that are known and were not tried."""
    lower, upper = as_version(below), as_version(above)
    if lower is None or upper is None:
        return ()
    done = {trial.version for trial in tried}
    between = (text for text in releases if lower < Version(text) < upper)
    return tuple(text for text in between if text not in done)


def _answer(clause: str, version: str) -> bool | None:
    release = as_version(version)
    return range_holds(clause, release) if release else None


def _bound(text: str) -> Version:
    """What a clause is sorted by."""
    return as_version(text.removesuffix(".*")) or ZERO


def bounds_of_base(
    articles: Sequence[Article], rows: Mapping[str, tuple[Row, ...]]
) -> tuple[Bound, ...]:
    """Every bound of a knowledge base.

    Args:
        articles: Its articles.
        rows: Id of an article → all rows of its evidence.
    """
    releases = releases_of(row for of_article in rows.values() for row in of_article)
    return tuple(
        bound
        for article in articles
        for bound in bounds_of(article, rows.get(article.id, ()), releases)
    )
