"""`tables.toml`: which distributions, programs and documents the tables are read off."""

from __future__ import annotations

import re
from typing import Annotated, Literal

import msgspec
from msgspec import Meta
from packaging.specifiers import InvalidSpecifier, SpecifierSet

from kbtools.config import Config, KbtoolsError

FILE = "tables.toml"
NAME = re.compile(r"[a-z0-9][a-z0-9-]*")


class TablesError(KbtoolsError):
    """`tables.toml` or a file of `tables/` cannot be read."""


class Fact(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What to look for in a wheel: in the text of a member, or in the names of the members."""

    pattern: str
    """Regular expression; its first group, or all of it, is a value."""
    member: str = ""
    """Path of a member of the wheel, as in `pkg/version.py`; empty: the names of all members."""
    split: bool = False
    """Whether a value is a list of words."""
    names: bool = False
    """Whether the values are names of an interface: those are shown that came or went since the
    release before."""


class Distribution(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """A distribution of the package index whose releases are rows."""

    releases: str = ""
    """A range; older releases are left out."""
    platforms: tuple[str, ...] = ("linux-x86_64", "linux-aarch64", "any", "source")
    facts: dict[str, Fact] = {}
    title: str = ""


class Program(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """A script of the knowledge base that prints statements about the toolchain that runs it."""

    script: Annotated[str, Meta(pattern=r"^[^/].*\.py$")]
    """Path from the folder of `tables.toml`; trusted as kbtools is."""
    toolchains: tuple[str, ...] = ()
    """Names of toolchains, as `toolchain sync` takes them; none: the interpreter of kbtools."""
    timeout: float = 600.0
    title: str = ""


class Reported(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """Statements of a document, which nobody measured here: typed, or matched by a pattern."""

    source: Annotated[str, Meta(pattern=r"^https://")]
    read: str
    """The day on which the document was read, as in `2026-01-31`."""
    statements: tuple[dict[str, object], ...] = ()
    pattern: str = ""
    """Regular expression with named groups; each place of the document that it matches is a
    statement."""
    about: str = ""
    """The group of `pattern` whose number a statement is about; the other groups are facts."""
    title: str = ""


class Tables(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """All of `tables.toml`."""

    requires: tuple[str, ...] = ()
    """Shell patterns of the distributions whose requirements are kept, as in `nvidia-*`."""
    default: tuple[str, ...] = ()
    """What `kbtools fits` looks for if nothing is asked for."""
    columns: dict[str, tuple[str, ...]] = {}
    """Column of the pages → distributions; it shows the requirement of the first that is there."""
    notes: tuple[str, ...] = ()
    """What the rows cannot know: said with each answer."""
    notes_in: dict[str, tuple[str, ...]] = {}
    """The same in other languages, for pages: language → texts."""
    distributions: dict[str, Distribution] = {}
    programs: dict[str, Program] = {}
    reported: dict[str, Reported] = {}

    @property
    def names(self) -> tuple[str, ...]:
        """Of all tables, in the order of the file."""
        return (*self.distributions, *self.programs, *self.reported)

    def kind(self, name: str) -> Literal["releases", "statements"]:
        """What the rows of a table are."""
        return "releases" if name in self.distributions else "statements"


def read_tables(config: Config) -> Tables:
    """The declarations of a knowledge base; empty if it has no `tables.toml`.

    Raises:
        TablesError: it cannot be read.
    """
    file = config.root / FILE
    try:
        tables = msgspec.toml.decode(file.read_text("utf-8"), type=Tables)
    except FileNotFoundError:
        return Tables()
    except (OSError, UnicodeDecodeError, msgspec.MsgspecError) as error:
        raise TablesError(f"{file}: {error}") from error
    for name in tables.names:
        if not NAME.fullmatch(name) or tables.names.count(name) > 1:
            raise TablesError(f"{file}: `{name}` is no name of a table, or that of two")
    for name, distribution in tables.distributions.items():
        try:
            SpecifierSet(distribution.releases)
            for fact in distribution.facts.values():
                re.compile(fact.pattern)
        except (InvalidSpecifier, re.error) as error:
            raise TablesError(f"{file}: {name}: {error}") from error
    for name, reported in tables.reported.items():
        try:
            groups = re.compile(reported.pattern).groupindex
        except re.error as error:
            raise TablesError(f"{file}: {name}: {error}") from error
        if reported.pattern and reported.about not in groups:
            raise TablesError(f"{file}: {name}: `about` must name a group of `pattern`")
    return tables
