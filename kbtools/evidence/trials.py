"""The versions on which a claim was tried: the runs of its snippets that went as claimed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec
from packaging.version import InvalidVersion, Version

from kbtools.articles.model import ABSENT, Affected, Article, Role, Snippet
from kbtools.evidence.state import Observation
from kbtools.evidence.verdicts import VerdictName
from kbtools.toolchains.affected import is_affected
from kbtools.toolchains.model import Toolchain

TWO_SIDED = (Role.REPRO, Role.DEADEND, Role.FACT)
"""Roles that go one way where a claim holds, and the other way elsewhere."""
AS_CLAIMED_INSIDE = (VerdictName.REPRODUCED, VerdictName.NO_HELP, VerdictName.HOLDS)
"""Green verdicts on a run in the claimed range; the others are on a run outside of it."""


class Claim(msgspec.Struct, frozen=True):
    """A range of toolchains that an article, or a fence of it, claims something of."""

    article: Article
    snippet: str
    """Id of the snippet whose fence has it; empty for the article's own."""
    affected: Affected
    """Where it says that the failure occurs; of a fact, where it holds."""
    observations: tuple[Observation, ...]
    """The runs that went as claimed, of snippets that go the other way elsewhere."""


class Trial(msgspec.Struct, frozen=True):
    """A version on which a claim was tried, with all its other conditions met."""

    version: str
    """Without its local part; `absent` where the distribution was not installed."""
    inside: bool
    """Whether it lies in the claimed range. What was claimed of it was seen."""


def claims_of(article: Article, observations: Iterable[Observation]) -> Iterator[Claim]:
    """The article's own claim, and those of its fences, each with the runs that bear on it.

    Where every fence has a range of its own, their runs bear on the article's, too.
    """
    as_claimed = [
        observation
        for observation in observations
        if observation.snippet.role in TWO_SIDED and observation.verdict.colour == "green"
    ]
    fences = [snippet for snippet in article.snippets if snippet.role in TWO_SIDED]
    if article.matter.affected:
        has_heirs = any(own_range(snippet) is None for snippet in fences)
        common = tuple(
            observation
            for observation in as_claimed
            if observation.snippet.role is not Role.FACT
            if own_range(observation.snippet) is None or not has_heirs
        )
        yield Claim(article, "", article.matter.affected, common)
    for snippet in fences:
        if own_range(snippet):
            own = tuple(o for o in as_claimed if o.snippet.id == snippet.id)
            yield Claim(article, snippet.id, snippet.affected, own)


def own_range(snippet: Snippet) -> str | None:
    """The range that its fence has; None if the article's counts. That of a fact may be empty."""
    return snippet.keys.holds or "" if snippet.role is Role.FACT else snippet.keys.affected


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
        version = _version_in(toolchain, name)
        if version is None and text != ABSENT:
            continue
        if is_affected(others, toolchain) is not True:
            continue
        went_as_inside = observation.verdict.name in AS_CLAIMED_INSIDE
        inside = is_affected(({name: text},), toolchain)
        anywhere = is_affected(claim.affected, toolchain)
        if inside is anywhere is went_as_inside:
            sides[version or ABSENT] = went_as_inside
    order = sorted(sides, key=lambda version: (version != ABSENT, as_version(version) or ZERO))
    return tuple(Trial(version, sides[version]) for version in order)


def _version_in(toolchain: Toolchain, name: str) -> str | None:
    text = toolchain.version(name)
    version = as_version(text) if text else None
    if version is None:
        return None
    # the build of a commit is no release, and its local part is all that says so
    return str(version) if (version.local or "").startswith("git") else version.public


ZERO = Version("0")
"""What has no version comes before all that have one."""


def as_version(text: str) -> Version | None:
    """The version of a text; None if it is none."""
    try:
        return Version(text)
    except InvalidVersion:
        return None
