"""Recipes: which program, on which toolchain, run how, its output sent through what."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

LISTS = ("expect", "expect_tail", "through")


@dataclass(frozen=True)
class Recipe:
    """How one log is made, and what a reader of it should be told."""

    name: str
    expect: tuple[str, ...]
    """Ids of the articles that are right, the best first; none for a log of something else."""
    code: str
    """A Python program that defines main(), or a bash script."""
    language: str = "python"
    on: str = "cpu"
    """The toolchain: its folder below KBTOOLS_TOOLCHAINS, or "here" for the interpreter at hand."""
    run: str = "plain"
    """How the program is run: a name in wrappers.RUNS."""
    through: tuple[str, ...] = ()
    """What its output passes through, in order: names in passages.PASSAGES, as "tail 30"."""
    shows: str = ""
    """Text that the program must print. A run without it did something else and makes no log."""
    file: str = "train.py"
    env: dict[str, str] = field(default_factory=dict)
    limit: int = 90
    """Seconds."""
    gpu: bool = False
    expect_tail: tuple[str, ...] | None = None
    """`expect` of the last 30 lines alone, where those hold nothing of what the whole shows."""
    first: str = ""
    """Part of the line that failed first, told by whoever wrote the program; empty: not told."""
    hard: bool = False
    """Quotes an error, or is broken up: also a person must look twice."""
    note: str = ""


def load(folder: Path) -> dict[str, Recipe]:
    """The recipes of all TOML files of a folder by name; ValueError for one that cannot be read."""
    found: dict[str, Recipe] = {}
    raw = {}
    for file in sorted(folder.glob("*.toml")):
        for name, table in tomllib.loads(file.read_text("utf-8")).items():
            if name in raw:
                raise ValueError(f"{file.name}: {name} is there twice")
            raw[name] = table
    for name, table in raw.items():
        found[name] = _recipe(name, table, raw)
    return found


def _recipe(name: str, table: dict[str, Any], raw: dict[str, dict[str, Any]]) -> Recipe:
    """One recipe; `like` takes what is not said from another, so a program is written once."""
    theirs = dict(raw[table["like"]]) if "like" in table else {}
    theirs.pop("expect_tail", None)  # what is at the end depends on what the output went through
    said = {**theirs, **table}
    said.pop("like", None)
    known = {f.name for f in fields(Recipe)}
    if unknown := sorted(set(said) - known):
        raise ValueError(f"{name}: unknown keys {', '.join(unknown)}")
    lists: dict[str, Any] = {key: tuple(said[key]) for key in LISTS if key in said}
    return Recipe(**{"name": name, **said, **lists})
