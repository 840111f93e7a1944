"""Articles as records of the Open Source Vulnerability format, as far as it can say what they say.

The articles are failures of toolchains, not vulnerabilities: the format is used for what it says of
versions, its ids have the prefix `x_` of databases that OSV.dev does not collect, and no severity
is given. A claim becomes a range only where the two mean the same, and an article a record only if
a version decides: a mistake that fails everywhere would mark every release of a package.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from typing import Literal

import msgspec
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

from kbtools.articles import links
from kbtools.articles.model import ABSENT, Affected, Upstream
from kbtools.articles.needs import ANY
from kbtools.evidence.bounds import Bound
from kbtools.evidence.tried import ENDS_ABOVE, ENDS_BELOW, operator_of
from kbtools.site.model import ArticleView, SiteModel, page_path
from kbtools.toolchains.model import MACHINE

FORMAT = "1.7.5"
Kind = Literal["REPORT", "FIX", "WEB", "ARTICLE"]


class Package(msgspec.Struct, frozen=True):
    """A distribution on PyPI."""

    name: str
    ecosystem: Literal["PyPI"] = "PyPI"


class Range(msgspec.Struct, frozen=True):
    """Versions in the order of the ecosystem."""

    events: tuple[dict[str, str], ...]
    """Each has one key: `introduced`, `fixed` (the first version that is well again), or
    `last_affected`.
    """
    type: Literal["ECOSYSTEM"] = "ECOSYSTEM"


class Affects(msgspec.Struct, frozen=True):
    """A package, and the versions that are affected whatever else is there."""

    package: Package
    ranges: tuple[Range, ...]


class Link(msgspec.Struct, frozen=True):
    """Where there is more."""

    type: Kind
    url: str


class Specific(msgspec.Struct, frozen=True):
    """What the format has no words for."""

    kind: str
    state: str
    """Computed from evidence, as on the article's page."""
    components: tuple[str, ...]
    stage: str
    severity: str
    affected: Affected
    """The whole claim: of two keys in one entry both must hold."""


class Record(msgspec.Struct, frozen=True, omit_defaults=True):
    """A record of OSV."""

    schema_version: str
    id: str
    modified: datetime.datetime
    summary: str
    details: str
    affected: tuple[Affects, ...]
    references: tuple[Link, ...]
    database_specific: Specific
    withdrawn: datetime.datetime | None = None


def path(view: ArticleView) -> str:
    """Of an article's record, as in `api/v1/osv/KB0002.json`."""
    return f"api/v1/osv/{view.id}.json"


def record(model: SiteModel, view: ArticleView) -> Record | None:
    """The record of an article.

    None where no version decides whether it fails, where it names no range of a package that holds
    by itself, or where nothing was run: a record has a date, and the only dates here are those of
    evidence.
    """
    matter, newest = view.article.matter, view.newest
    affected = affects(matter.affected, view.bounds)
    if not affected or newest is None or not view.is_decided_by_version:
        return None
    base, retired = model.config.knowledge_base, matter.retired
    page = Link(
        "ARTICLE", f"{base.url.rstrip('/')}/{page_path(model, view.id, model.languages[0])}"
    )
    return Record(
        schema_version=FORMAT,
        id=f"x_{view.id}",
        modified=newest.astimezone(datetime.UTC),
        summary=matter.title,
        details=f"{matter.summary}\n\nState, computed from runs: {view.state.word}.",
        affected=affected,
        references=(*([page] if base.url else []), *map(link, matter.upstream)),
        database_specific=Specific(
            kind="a failure of a toolchain, not a vulnerability",
            state=view.state.word,
            components=matter.components,
            stage=matter.stage,
            severity=matter.severity,
            affected=matter.affected,
        ),
        withdrawn=(
            datetime.datetime.combine(retired.since, datetime.time(), datetime.UTC)
            if retired
            else None
        ),
    )


def link(thread: Upstream) -> Link:
    """An upstream thread or commit. What only the article infers is not called a fix."""
    kind: Kind = "WEB"
    if thread.basis == "stated" and thread.kind in ("report", "fix"):
        kind = "REPORT" if thread.kind == "report" else "FIX"
    return Link(kind, links.upstream_url(thread.reference))


def affects(affected: Affected, bounds: Sequence[Bound] = ()) -> tuple[Affects, ...]:
    """The packages and ranges that a claim names, each by itself.

    A range ends where a bound was measured or is reported; where none is, with the oldest or the
    newest version that was seen to fail.

    An alternative that also asks for something else (a Python, a GPU, a second package) is left
    out: its range alone would call too much affected. So is `*`, where no version decides.
    """
    ranges_of: dict[str, list[Range]] = {}
    for i, alternative in enumerate(affected):
        for name, specifiers in alternative.items():
            if len(alternative) > 1 or name in MACHINE or specifiers in (ABSENT, ANY):
                continue
            own = [b for b in bounds if (b.snippet, b.alternative, b.name) == ("", i, name)]
            if events := range_events(_as_far_as_seen(specifiers, own)):
                ranges_of.setdefault(canonicalize_name(name), []).append(Range(events))
    return tuple(Affects(Package(name), tuple(ranges)) for name, ranges in ranges_of.items())


def _as_far_as_seen(text: str, bounds: Sequence[Bound]) -> str:
    """A range with an end on each side: its bounds, but for open ones, or what was seen to fail."""
    failed = [trial.version for bound in bounds[:1] for trial in bound.tried if trial.inside]
    if not failed:
        return text
    decided = [bound.clause for bound in bounds if bound.standing != "open"]
    operators = {operator_of(clause) for clause in decided}
    below = [] if operators & {*ENDS_BELOW} else [f">={failed[0]}"]
    above = [] if operators & {*ENDS_ABOVE} else [f"<={failed[-1]}"]
    return ",".join((*decided, *below, *above))


def range_events(text: str) -> tuple[dict[str, str], ...]:
    """A PEP 440 range as events; none where events cannot say the same.

    `>` and `!=` cannot be said: the next version is not known here.
    """
    lower, fixed, last = Version("0"), list[Version](), list[Version]()
    for clause in SpecifierSet(text):
        bound = Version(clause.version.removesuffix(".*"))
        if clause.operator == ">=":
            lower = max(lower, bound)
        elif clause.operator == "<":
            fixed.append(bound)
        elif clause.operator == "<=":
            last.append(bound)
        elif clause.operator == "==" and clause.version.endswith(".*"):
            lower = max(lower, bound)
            fixed.append(_after(bound.release))
        elif clause.operator == "==":
            lower = max(lower, bound)
            last.append(bound)
        elif clause.operator == "~=":
            lower = max(lower, bound)
            fixed.append(_after(bound.release[:-1]))
        else:
            return ()
    end: dict[str, str] | None = None
    if fixed and (not last or min(fixed) <= min(last)):
        end = {"fixed": str(min(fixed))}
    elif last:
        end = {"last_affected": str(min(last))}
    if (fixed and lower >= min(fixed)) or (last and lower > min(last)):
        return ()  # no version at all
    return ({"introduced": str(lower)}, *([end] if end else []))


def _after(stem: tuple[int, ...]) -> Version:
    """The first version that no longer begins with these numbers."""
    return Version(".".join(map(str, (*stem[:-1], stem[-1] + 1))))
