"""The bounds of what articles claim, each held to evidence on both of its sides."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal

import msgspec
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from kbtools.articles.decoding import parse_affected
from kbtools.articles.model import ABSENT, Affected, Article, ReportedBound, Role
from kbtools.evidence.rows import Row
from kbtools.evidence.state import Observation, judge_rows
from kbtools.toolchains.affected import is_affected, range_holds
from kbtools.toolchains.model import Toolchain

TWO_SIDED = (Role.REPRO, Role.DEADEND)
"""Roles that go one way where a claim holds, and the other way elsewhere."""
Standing = Literal["measured", "reported", "open"]


class Trial(msgspec.Struct, frozen=True):
    """A version on which a claim was tried, with all its other conditions met."""

    version: str
    """Without its local part; `absent` where the distribution was not installed."""
    inside: bool
    """Whether it lies in the claimed range. What was claimed of it was seen."""


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

    @property
    def text(self) -> str:
        """As in `torch<2.6`."""
        return f"{self.name} {ABSENT}" if self.clause == ABSENT else f"{self.name}{self.clause}"

    @property
    def missing(self) -> str:
        """Which run would measure it, in words; empty where runs did."""
        if self.steps:
            return ""
        sides = {
            _answer(self.clause, trial.version) for trial in self.tried if trial.version != ABSENT
        }
        if self.clause == ABSENT:
            sides = {trial.version == ABSENT for trial in self.tried}
        parts = []
        if True not in sides:
            parts.append(f"a run with {self.text} that goes as claimed")
        if False not in sides:
            parts.append(f"a run outside of {self.text} that goes the other way")
        return " and ".join(parts)


class Claim(msgspec.Struct, frozen=True):
    """A range of toolchains that an article, or a fence of it, claims something of."""

    article: Article
    snippet: str
    """Id of the snippet whose fence has it; empty for the article's own."""
    affected: Affected
    observations: tuple[Observation, ...]
    """The runs that went as claimed, of snippets that go the other way elsewhere."""


def claims_of(article: Article, observations: Iterable[Observation]) -> Iterator[Claim]:
    """The article's own claim, and those of its fences, each with the runs that bear on it."""
    as_claimed = [
        observation
        for observation in observations
        if observation.snippet.role in TWO_SIDED and observation.verdict.colour == "green"
    ]
    if article.matter.affected:
        common = tuple(o for o in as_claimed if o.snippet.keys.affected is None)
        yield Claim(article, "", article.matter.affected, common)
    for snippet in article.snippets:
        if snippet.role in TWO_SIDED and snippet.keys.affected is not None:
            own = tuple(o for o in as_claimed if o.snippet.id == snippet.id)
            yield Claim(article, snippet.id, snippet.affected, own)


def bounds_of(
    article: Article, rows: tuple[Row, ...], releases: Mapping[str, Sequence[str]]
) -> tuple[Bound, ...]:
    """Every bound of an article, in the order in which the article states them.

    Args:
        article: The article; one that is retired claims nothing any more.
        rows: All rows of its evidence. Those of code that was edited since do not count.
        releases: Distribution → its releases that any run of the knowledge base knows.
    """
    if article.matter.retired or not has_bounds(article):
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
    """Whether it or one of its fences claims a range."""
    return bool(article.matter.affected) or any(s.keys.affected for s in article.snippets)


def key_of(entry: ReportedBound) -> tuple[str, str]:
    """Name and clause of an entry of `bounds`; the text itself where it is no bound."""
    try:
        [[(name, text)]] = [tuple(c.items()) for c in parse_affected(entry.bound)]
        [clause] = clauses(text)
    except ValueError:
        return "", entry.bound
    return str(canonicalize_name(name)), clause


def clauses(text: str) -> tuple[str, ...]:
    """The clauses of a range, as in `>=2.2` and `<3.0`, in the order of their versions."""
    if text == ABSENT:
        return (ABSENT,)
    specifiers = sorted(SpecifierSet(text), key=lambda clause: (_bound(clause.version), str(clause)))
    return tuple(map(str, specifiers))


def releases_of(rows: Iterable[Row]) -> dict[str, tuple[str, ...]]:
    """Distribution → the releases of it that some toolchain had, from old to new."""
    known: dict[str, set[Version]] = {}
    for packages in {row.toolchain.identity: row.toolchain.packages for row in rows}.values():
        for name, text in packages.items():
            version = _version(text)
            if version and not version.is_prerelease:
                known.setdefault(name, set()).add(Version(version.public))
    return {name: tuple(map(str, sorted(versions))) for name, versions in known.items()}


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
    known = releases.get(str(canonicalize_name(name)), ())
    for clause in clauses(text):
        steps = _steps(clause, tried, known)
        entry = reported.get((str(canonicalize_name(name)), clause))
        standing: Standing = "measured" if steps else "reported" if entry else "open"
        receipt = entry.receipt if entry and not steps else ""
        place = (claim.article.id, claim.snippet, i, name, clause)
        yield Bound(*place, standing, steps, tried, receipt)


def trials(claim: Claim, i: int, name: str) -> tuple[Trial, ...]:
    """The versions of a distribution on which a claim was tried, from old to new.

    Those where the alternative's other conditions hold: else the run says nothing of this one. A
    version outside of the range on which another alternative holds says nothing of it, either.

    Args:
        claim: The claim.
        i: Which of its alternatives.
        name: Of the distribution, or of a part of the machine.
    """
    text = claim.affected[i][name]
    others = ({n: t for n, t in claim.affected[i].items() if n != name},)
    sides: dict[str, bool] = {}
    for observation in claim.observations:
        toolchain = observation.row.toolchain
        version = _tried(toolchain, name)
        if version is None and text != ABSENT:
            continue
        if is_affected(others, toolchain) is not True:
            continue
        inside = is_affected(({name: text},), toolchain)
        if inside is True or (inside is False and is_affected(claim.affected, toolchain) is False):
            sides[version or ABSENT] = inside
    order = sorted(sides, key=lambda version: (version != ABSENT, _bound(version)))
    return tuple(Trial(version, sides[version]) for version in order)


def _steps(clause: str, tried: Sequence[Trial], known: Sequence[str]) -> tuple[Step, ...]:
    """Where what happens changes at a clause, between versions that were tried.

    Args:
        clause: As in `<2.6`.
        tried: The versions of its distribution, from old to new.
        known: The releases of the distribution that are known.
    """
    sides = []
    for trial in tried:
        side = trial.version == ABSENT if clause == ABSENT else _answer(clause, trial.version)
        # a version that another clause of the range leaves out says nothing of this one
        if side is not None and (trial.inside or side is False):
            sides.append((trial.version, side))
    return tuple(
        Step(below, above, _between(below, above, known))
        for (below, side), (above, other) in zip(sides, sides[1:], strict=False)
        if side != other
    )


def _between(below: str, above: str, known: Sequence[str]) -> tuple[str, ...]:
    lower, upper = _version(below), _version(above)
    if lower is None or upper is None:
        return ()
    return tuple(release for release in known if lower < Version(release) < upper)


def _answer(clause: str, version: str) -> bool | None:
    release = _version(version)
    return range_holds(clause, release) if release else None


def _tried(toolchain: Toolchain, name: str) -> str | None:
    text = toolchain.version(name)
    version = _version(text) if text else None
    if version is None:
        return None
    # the build of a commit is no release, and its local part is all that says so
    return str(version) if (version.local or "").startswith("git") else version.public


def _version(text: str) -> Version | None:
    try:
        return Version(text)
    except InvalidVersion:
        return None


def _bound(text: str) -> Version:
    """What a clause or a trial is sorted by."""
    return _version(text.removesuffix(".*")) or Version("0")
