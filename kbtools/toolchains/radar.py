"""Which releases are newer than what toolchains and notices name.

Of a notice whose window has no end that is a proposal, and no more: whoever follows it reads the
thread and the changelog.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Literal

import msgspec
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from kbtools.articles.model import ABSENT
from kbtools.articles.notices import Notice
from kbtools.toolchains.affected import parse_range
from kbtools.toolchains.declared import Declaration
from kbtools.toolchains.model import MACHINE

ThreadState = Literal["merged", "closed", "open", "unknown"]
Days = Mapping[Version, datetime.date | None]
"""Release → the day on which it was published; None where nobody says."""


class NewRelease(msgspec.Struct, frozen=True):
    """A release that is newer than every one that a toolchain names."""

    package: str
    version: str
    before: str
    """The newest that a toolchain names."""
    toolchain: str
    """That toolchain with the new release in it, as in `engine-2@engine==3.0`."""


def new_releases(
    declarations: Mapping[str, Declaration],
    packages: Iterable[str],
    releases_of: Callable[[str], Days],
) -> Iterator[NewRelease]:
    """The newest release of each package, where no toolchain names it or a newer one.

    Args:
        declarations: The toolchains, by name.
        packages: Names of distributions.
        releases_of: Gives the releases of a distribution, an empty mapping for no distribution.
    """
    for package in packages:
        pins = [
            (version, -len(declaration.packages), name)
            for name, declaration in declarations.items()
            if (version := _pin_of(declaration, package))
        ]
        if not pins:
            continue
        newest = max(releases_of(package), default=None)
        before = max(version for version, _, _ in pins)
        if newest is None or newest <= before:
            continue
        # of several toolchains with that release the plainest: what goes with it is pinned, too
        _, name = max((size, name) for version, size, name in pins if version == before)
        text = f"{name}@{package}=={newest}"
        yield NewRelease(package, str(newest), str(before), text)


def _pin_of(declaration: Declaration, package: str) -> Version | None:
    """The release of a package that a toolchain names; None if it names none."""
    for requirement in map(Requirement, declaration.packages):
        clauses = list(requirement.specifier)
        is_pinned = len(clauses) == 1 and clauses[0].operator == "=="
        if is_pinned and canonicalize_name(requirement.name) == package:
            return Version(clauses[0].version.rstrip(".*"))
    return None


class Proposal(msgspec.Struct, frozen=True):
    """A notice whose window can perhaps be closed."""

    notice: str
    title: str
    package: str
    looked_up: datetime.date
    releases: tuple[str, ...]
    """Published since the notice was looked up, old to new."""
    threads: dict[str, ThreadState]
    """Those of the notice, and what became of them."""


def proposals(
    notices: Iterable[Notice],
    releases_of: Callable[[str], Days],
    state_of: Callable[[str], ThreadState],
) -> Iterator[Proposal]:
    """The notices to look at again: without an end, with newer releases, and a thread that ended.

    Args:
        notices: Of the knowledge base.
        releases_of: Gives the releases of a distribution, an empty mapping for no distribution.
        state_of: What became of a thread; `unknown` where nobody was asked.
    """
    for notice in notices:
        if notice.matter.retired:
            continue
        for package, text in endless(notice):
            newer = since(notice, text, releases_of(package))
            if not newer:
                continue
            threads = {thread: state_of(thread) for thread in notice.matter.threads}
            if set(threads.values()) == {"open"}:
                continue
            yield Proposal(
                notice.id,
                notice.matter.title,
                package,
                notice.matter.looked_up,
                tuple(map(str, newer)),
                threads,
            )


def endless(notice: Notice) -> Iterator[tuple[str, str]]:
    """The distributions whose range in a notice has no end, each once, with that range."""
    seen: set[str] = set()
    for alternative in notice.matter.affected:
        if any(_ends(text) for name, text in alternative.items() if text != ABSENT):
            continue
        for name, text in alternative.items():
            if name not in MACHINE and name not in seen and text != ABSENT:
                seen.add(name)
                yield name, text


def _ends(text: str) -> bool:
    return any(clause.operator in ("<", "<=", "==", "~=") for clause in parse_range(text))


def since(notice: Notice, text: str, days: Days) -> tuple[Version, ...]:
    """The releases in a range that were published after a notice was looked up, old to new.

    Of a release without a day it counts that it lies above every version that the range names.

    Args:
        notice: Which says when it was looked up.
        text: The range.
        days: Of the releases.
    """
    named = max((Version(clause.version) for clause in parse_range(text)), default=Version("0"))
    return tuple(
        sorted(
            version
            for version, day in days.items()
            if version in parse_range(text)
            and (day > notice.matter.looked_up if day else version > named)
        )
    )
