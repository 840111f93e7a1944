"""The rows of tables: releases as they were read, and statements about versions."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from functools import cache
from typing import Literal

import msgspec
from packaging.requirements import Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import Version

Basis = Literal["measured", "reported"]
"""`measured`: read off an artefact, or seen in a run; `reported`: a document says so."""

ARCHITECTURES = "architectures"
"""The fact whose values are the GPU targets that a file has code for, as in `sm_90`."""
CUDA = "cuda"
"""The fact whose value is the version of CUDA that a file was built with."""
SOURCE = "source"
"""The platform of a source archive."""


class Origin(msgspec.Struct, frozen=True, omit_defaults=True):
    """Where a row was read."""

    file: str
    """Name of a wheel or source archive; of a toolchain and its program; or an address."""
    sha256: str = ""
    size: int = 0
    """Bytes of the file; 0: unknown."""


class Release(msgspec.Struct, frozen=True, omit_defaults=True):
    """A release of a distribution on one platform, as its index and one of its files have it."""

    package: str
    version: str
    platform: str
    """As in `linux-x86_64`, `win-amd64`, `any`; `source` for a source archive."""
    tags: tuple[str, ...]
    """Python and ABI tags of all its wheels for the platform, as in `cp312-cp312`."""
    source: Origin
    """The file whose metadata was read; other Pythons have files of their own."""
    date: datetime.date
    """When it was read."""
    uploaded: datetime.date | None = None
    requires_python: str = ""
    requires: tuple[str, ...] | None = None
    """Its requirements that a table is about; None where the file does not say."""
    glibc: str = ""
    """The oldest glibc that its wheels' tags admit, as in `2.28`."""
    facts: dict[str, tuple[str, ...]] = {}
    """What was read in the wheel: name of a fact → its values. No value: looked for, not there."""
    basis: Basis = "measured"

    @property
    def parsed(self) -> Version:
        """Its version, to compare."""
        return Version(self.version)

    def fact(self, name: str) -> str:
        """The only value of a fact; empty if there is none or several."""
        values = self.facts.get(name, ())
        return values[0] if len(values) == 1 else ""


class Statement(msgspec.Struct, frozen=True, omit_defaults=True):
    """What holds of some versions: that they work together, or what they need."""

    about: dict[str, str]
    """`driver`, `sm`, `python`, `cuda` or a distribution → range of versions, as in `>=12,<13`."""
    source: Origin
    date: datetime.date
    basis: Basis
    works: bool | None = None
    """Whether they work together; None: it says something else."""
    needs: dict[str, str] = {}
    """Name → the range that its version must lie in."""
    facts: dict[str, tuple[str, ...]] = {}
    note: str = ""

    def applies(self, versions: Mapping[str, str]) -> bool:
        """Whether all versions that it is about are given, and lie in its ranges."""
        return all(
            name in versions and contains(text, versions[name]) for name, text in self.about.items()
        )


@cache
def requirement_of(text: str) -> Requirement:
    """A requirement of a row, parsed; nobody changes it.

    Raises:
        InvalidRequirement: it is none.
    """
    return Requirement(text)


@cache
def contains(specifier: str, version: str) -> bool:
    """Whether a version lies in a range; its local part does not count."""
    try:
        return SpecifierSet(specifier).contains(Version(version).public, prereleases=True)
    except InvalidSpecifier:
        return False
