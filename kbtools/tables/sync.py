"""Writes the tables: releases as the package index has them, facts as their wheels have them."""

from __future__ import annotations

import datetime
import hashlib
import re
import urllib.request
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from fnmatch import fnmatch
from pathlib import Path
from urllib.parse import urljoin

import msgspec
from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

from kbtools.config import Config
from kbtools.tables import archives
from kbtools.tables.declared import Distribution, Reported, Tables, TablesError
from kbtools.tables.files import Named, parse
from kbtools.tables.model import SOURCE, Origin, Release, Statement
from kbtools.tables.store import read_releases
from kbtools.toolchains.package_index import IndexFile, files_of, open_url
from kbtools.toolchains.pip_settings import PipSettings

AT_ONCE = 4
"""Files that are read at the same time."""

Say = Callable[[str], None]
Key = tuple[Version, str]
"""A release, and a platform."""
Files = Mapping[Key, Sequence[tuple[Named, IndexFile]]]


def releases(
    config: Config, name: str, tables: Tables, settings: PipSettings, say: Say, *, again: bool
) -> tuple[Release, ...]:
    """The rows of a distribution, new to old; a row whose file was read before stays as it is.

    Args:
        config: Of the knowledge base, whose rows are read.
        name: Of the distribution.
        tables: The declarations.
        settings: Say which indexes are asked.
        say: Told about each file that is read.
        again: Whether to read files whose rows are there, too.

    Raises:
        PackageIndexError: an index cannot be reached or read.
        ArchiveError: a file cannot be read.
        TablesError: no index has the distribution.
    """
    distribution = tables.distributions[name]
    files = _files(canonicalize_name(name), distribution, settings)
    if not files:
        raise TablesError(f"no index has a release of {name} that tables.toml asks for")
    before = {} if again else {r.source.file: r for r in read_releases(config, name)}
    today = datetime.datetime.now(datetime.UTC).date()

    def row(key: Key) -> Release:
        named, file = typical(files[key])
        tags = tuple(
            sorted({tag for name_parts, _ in files[key] for tag in name_parts.tags}, key=_order)
        )
        fresh = Release(
            package=name,
            version=str(key[0]),
            platform=key[1],
            tags=tags,
            source=Origin(file.filename, file.hashes.get("sha256", ""), file.size),
            date=today,
            uploaded=file.upload_time.date() if file.upload_time else None,
            requires_python=file.requires_python or "",
            glibc=named.glibc,
        )
        old = before.get(file.filename)
        if old and _is_same(old, fresh, distribution):
            return old
        say(f"{name} {key[0]} {key[1]}: {file.filename}")
        return _with_metadata(fresh, file.url, distribution, tables.requires, settings)

    keys = sorted(files, key=lambda key: (key[0], key[1]), reverse=True)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return tuple(pool.map(row, keys))


def _is_same(old: Release, fresh: Release, distribution: Distribution) -> bool:
    """Whether a row says of its files what the index says today, and has the wanted facts."""
    looked_for = old.facts.keys() == distribution.facts.keys() or old.platform == SOURCE
    return looked_for and old.tags == fresh.tags and old.source == fresh.source


def _files(
    name: str, distribution: Distribution, settings: PipSettings
) -> dict[Key, list[tuple[Named, IndexFile]]]:
    """Release and platform → its files; a source archive counts only where there is no wheel."""
    chosen: dict[Key, list[tuple[Named, IndexFile]]] = {}
    wanted = SpecifierSet(distribution.releases)
    filenames: set[str] = set()
    for index in settings.indexes:
        page = f"{index.rstrip('/')}/{name}/"
        for file in files_of(page, settings):
            named = parse(file.filename)
            if named is None or file.yanked or named.version.is_prerelease:
                continue
            is_wanted = named.platform in distribution.platforms and named.version in wanted
            if is_wanted and file.filename not in filenames:
                filenames.add(file.filename)
                place = msgspec.structs.replace(file, url=urljoin(page, file.url))
                chosen.setdefault((named.version, named.platform), []).append((named, place))
    built = {version for version, platform in chosen if platform != SOURCE}
    return {
        key: files for key, files in chosen.items() if not (key[1] == SOURCE and key[0] in built)
    }


def typical(files: Sequence[tuple[Named, IndexFile]]) -> tuple[Named, IndexFile]:
    """The file that is read for all of a release's files on a platform: that of the newest Python.

    A Python without the global lock comes last: its wheels are rarer. Of several builds it is the
    last one, as an installer has it.
    """

    def rank(pair: tuple[Named, IndexFile]) -> tuple[bool, tuple[int, str], int]:
        named = pair[0]
        last = max(map(_order, named.tags), default=(0, ""))
        return not named.is_without_lock, last, named.build

    return max(files, key=rank)


def _order(tag: str) -> tuple[int, str]:
    digits = "".join(filter(str.isdigit, tag.partition("-")[0]))
    return (int(digits[1:] or 0) if digits else 0, tag)


def _with_metadata(
    row: Release,
    url: str,
    distribution: Distribution,
    kept: Iterable[str],
    settings: PipSettings,
) -> Release:
    """A row with what the file itself says."""
    facts: dict[str, tuple[str, ...]] = {}
    if row.platform == SOURCE:
        fields = archives.headers(archives.source_metadata(url, settings))
        says_requirements = "requires-dist" in fields
    else:
        with archives.wheel(url, settings) as archive:
            fields = archives.headers(archives.metadata_of(archive))
            facts = archives.facts(archive, distribution.facts)
        says_requirements = True
        facts |= {name: () for name in distribution.facts if name not in facts}
    requires = tuple(requirements(fields.get("requires-dist", ()), tuple(kept)))
    python = fields.get("requires-python", [row.requires_python])[0]
    return msgspec.structs.replace(
        row,
        requires_python=python,
        requires=requires if says_requirements else None,
        facts=facts,
    )


def requirements(texts: Iterable[str], patterns: Sequence[str]) -> Iterator[str]:
    """The requirements of distributions that a pattern names, each as packaging writes it."""
    for text in texts:
        try:
            requirement = Requirement(text)
        except InvalidRequirement:
            continue  # as of releases before PEP 440
        if any(fnmatch(canonicalize_name(requirement.name), pattern) for pattern in patterns):
            yield str(requirement)


def reported(
    declared: Reported,
    settings: PipSettings,
    rows: Sequence[Statement] = (),
    copy: Path | None = None,
) -> tuple[Statement, ...]:
    """The statements of a document; without a pattern the document is not read.

    Args:
        declared: The document.
        settings: Say how a server is reached.
        rows: Of its table; they stay if they are of the same address and day.
        copy: A file with the document's content; it is read in place of the address.

    Raises:
        TablesError: they cannot be decoded, or the document cannot be read or has none.
    """
    origin, written = Origin(declared.source), declared.statements
    if declared.pattern:
        if {(row.source.file, str(row.date)) for row in rows} == {(origin.file, declared.read)}:
            return tuple(rows)
        content = _content(declared.source, settings, copy)
        origin = Origin(declared.source, hashlib.sha256(content).hexdigest(), len(content))
        written = tuple(matched(declared, content.decode("utf-8", "replace")))
        if not written:
            raise TablesError(f"{declared.source}: its pattern in tables.toml matches nothing")
    try:
        day = datetime.date.fromisoformat(declared.read)
        common = {"source": msgspec.to_builtins(origin), "date": day, "basis": "reported"}
        return tuple(msgspec.convert(statement | common, Statement) for statement in written)
    except (ValueError, msgspec.ValidationError) as error:
        raise TablesError(f"tables.toml: {declared.source}: {error}") from error


def matched(declared: Reported, text: str) -> Iterator[dict[str, object]]:
    """A statement for each number in a document, with what the other groups matched."""
    facts: dict[str, dict[str, list[str]]] = {}
    for match in re.finditer(declared.pattern, text):
        groups = match.groupdict(default="")
        row = facts.setdefault(groups.pop(declared.about), {})
        for name, value in groups.items():
            row.setdefault(name, []).append(value)
    for number, row in facts.items():
        yield {"about": {declared.about: f"=={number}"}, "facts": row}


def _content(url: str, settings: PipSettings, copy: Path | None) -> bytes:
    try:
        if copy:
            return copy.read_bytes()
        with open_url(urllib.request.Request(url), settings) as response:
            return response.read()
    except OSError as error:
        raise TablesError(f"{copy or url}: {error}; --copy FILE reads a copy of it") from error
