"""What a new release changed, by the tables: a pin that moved, a name that is gone."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal

import msgspec
from packaging.version import InvalidVersion, Version

from kbtools.tables.model import Release, Statement, requirement_of
from kbtools.toolchains.model import MACHINE

Kind = Literal["released", "pin", "gone", "new", "stopped"]


class TableChange(msgspec.Struct, frozen=True):
    """What a release has otherwise than the one before it."""

    kind: Kind
    """`pin`: a requirement, or a fact with one value; `gone` and `new`: values of a fact, such as
    names or GPU targets, or tags of wheels; `stopped`: a program says that it no longer works."""
    package: str
    version: str
    before: str
    """The release that it is compared with; empty if there is none."""
    text: str
    """As in `engine ==2.0 → ==3.0`."""


Rows = Mapping[str, Sequence[Release | Statement]]
"""Name of a table → its rows."""


def changes_between(earlier: Rows, later: Rows) -> tuple[TableChange, ...]:
    """What the releases changed that the later tables have and the earlier ones do not.

    A table that had no row before is new itself, and its releases are not.
    """
    listed: dict[TableChange, None] = {}
    for name, rows in later.items():
        if not earlier.get(name):
            continue
        old_releases = [row for row in earlier[name] if isinstance(row, Release)]
        old_statements = [row for row in earlier[name] if isinstance(row, Statement)]
        releases = [row for row in rows if isinstance(row, Release)]
        statements = [row for row in rows if isinstance(row, Statement)]
        for change in (
            *_of_releases(old_releases, releases),
            *_of_statements(old_statements, statements),
        ):
            listed.setdefault(change)
    return tuple(listed)


def _of_releases(earlier: Iterable[Release], later: Sequence[Release]) -> Iterator[TableChange]:
    """The changes of each new release on each platform, against the release before it there."""
    present = {(row.version, row.platform) for row in earlier}
    for row in later:
        if (row.version, row.platform) in present:
            continue
        previous = release_before(row, later)
        before = previous.version if previous else ""
        if row.version not in {version for version, _ in present}:
            newest = max((r.parsed for r in later if r.parsed < row.parsed), default=None)
            yield TableChange("released", row.package, row.version, str(newest or ""), "")
        if previous is None:
            continue
        for kind, text in (
            *_pins(previous, row),
            *_facts({**previous.facts, "tags": previous.tags}, {**row.facts, "tags": row.tags}),
        ):
            yield TableChange(kind, row.package, row.version, before, text)


def _pins(previous: Release, release: Release) -> Iterator[tuple[Kind, str]]:
    """The requirements that are not what they were, without those of extras."""
    if previous.requires is None or release.requires is None:
        return
    older, newer = _ranges(previous.requires), _ranges(release.requires)
    for name in sorted({*older, *newer}):
        was, now = older.get(name), newer.get(name)
        if was != now:
            absent = "not required"
            yield (
                "pin",
                f"{name} {absent if was is None else was} → {absent if now is None else now}",
            )
    if previous.requires_python != release.requires_python:
        yield "pin", f"python {previous.requires_python} → {release.requires_python}"


def _ranges(requirements: Iterable[str]) -> dict[str, str]:
    """Name → its ranges, as in `==2.0`; `any` for a requirement without one."""
    ranges: dict[str, set[str]] = {}
    for text in requirements:
        requirement = requirement_of(text)
        if "extra" not in str(requirement.marker or ""):
            ranges.setdefault(requirement.name, set()).add(str(requirement.specifier) or "any")
    return {name: " or ".join(sorted(texts)) for name, texts in ranges.items()}


def _facts(
    previous: Mapping[str, Sequence[str]], facts: Mapping[str, Sequence[str]]
) -> Iterator[tuple[Kind, str]]:
    """The values of facts that came and went; of a fact with one value, that it moved."""
    for name in sorted({*previous, *facts}):
        was, now = previous.get(name, ()), facts.get(name, ())
        if len(was) == len(now) == 1:
            if was != now:
                yield "pin", f"{name} {was[0]} → {now[0]}"
            continue
        added, removed = came_and_went(was, now)
        if removed:
            yield "gone", f"{name}: {', '.join(removed)}"
        if added:
            yield "new", f"{name}: {', '.join(added)}"


def came_and_went(was: Iterable[str], now: Iterable[str]) -> tuple[list[str], list[str]]:
    """The values that are new, and those that are gone, each sorted."""
    return sorted({*now} - {*was}), sorted({*was} - {*now})


def release_before(release: Release, releases: Iterable[Release]) -> Release | None:
    """The newest of these that is older, and for the same platform."""
    older = (r for r in releases if r.platform == release.platform and r.parsed < release.parsed)
    return max(older, key=lambda earlier: earlier.parsed, default=None)


def _of_statements(
    earlier: Iterable[Statement], later: Sequence[Statement]
) -> Iterator[TableChange]:
    """The changes of each new statement about one release, against that about the one before it."""
    present = {_key(row.about) for row in earlier}
    for row in later:
        package, version = _subject(row.about)
        if not package or _key(row.about) in present:
            continue
        rest = {name: text for name, text in row.about.items() if name != package}
        older = [
            (Version(number), earlier_row)
            for earlier_row in later
            for name, number in [_subject(earlier_row.about)]
            if name == package
            and Version(number) < Version(version)
            and {key: text for key, text in earlier_row.about.items() if key != package} == rest
        ]
        if not older:
            continue
        number, previous = max(older, key=lambda pair: pair[0])
        where = "".join(f" ({name} {text.lstrip('=')})" for name, text in sorted(rest.items()))
        if previous.works and row.works is False:
            note = f"no longer works{where}: {row.note}".rstrip(": ")
            yield TableChange("stopped", package, version, str(number), note)
        for kind, text in _facts(previous.facts, row.facts):
            yield TableChange(kind, package, version, str(number), f"{text}{where}")


def _key(about: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(about.items()))


def _subject(about: Mapping[str, str]) -> tuple[str, str]:
    """The only distribution that a statement is about, and its release; empty for none."""
    exact = [
        (name, match[1])
        for name, text in about.items()
        if name not in MACHINE and (match := re.fullmatch(r"==([^*]+)", text))
    ]
    try:
        [(name, version)] = exact
        Version(version)
    except (ValueError, InvalidVersion):
        return "", ""
    return name, version
