"""The files of `tables/`: one of JSON Lines for each table, written whole and renamed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

import msgspec

from kbtools.config import Config
from kbtools.files import write_whole
from kbtools.tables.declared import Tables, TablesError, read_tables
from kbtools.tables.model import Release, Statement

FOLDER = "tables"
"""Of the rows, below that of the knowledge base."""

Row = TypeVar("Row", Release, Statement)


class Base(msgspec.Struct, frozen=True):
    """The tables of a knowledge base."""

    tables: Tables
    releases: dict[str, tuple[Release, ...]]
    """Distribution → its rows, new to old."""
    statements: dict[str, tuple[Statement, ...]]
    """Name of a table → its rows."""


def file_of(config: Config, name: str) -> Path:
    """The file of a table."""
    return config.root / FOLDER / f"{name}.jsonl"


def read(config: Config) -> Base:
    """The declared tables with their rows; a table that was never synced has none.

    Raises:
        TablesError: a file cannot be read.
    """
    tables = read_tables(config)
    return Base(
        tables,
        {name: read_releases(config, name) for name in tables.distributions},
        {name: read_statements(config, name) for name in (*tables.programs, *tables.reported)},
    )


def read_releases(config: Config, name: str) -> tuple[Release, ...]:
    """The rows of a distribution, new to old.

    Raises:
        TablesError: its file cannot be read.
    """
    return _rows(file_of(config, name), Release)


def read_statements(config: Config, name: str) -> tuple[Statement, ...]:
    """The rows of a table of statements.

    Raises:
        TablesError: its file cannot be read.
    """
    return _rows(file_of(config, name), Statement)


def _rows(file: Path, kind: type[Row]) -> tuple[Row, ...]:
    try:
        content = file.read_bytes()
    except FileNotFoundError:
        return ()
    except OSError as error:
        raise TablesError(f"{file}: {error}") from error
    return decoded(content, str(file), kind)


def decoded(content: bytes, place: str, kind: type[Row]) -> tuple[Row, ...]:
    """The rows of a file's content; `place` is its name in messages.

    Raises:
        TablesError: a line is no row of that kind.
    """
    try:
        return tuple(msgspec.json.decode(line, type=kind) for line in content.splitlines())
    except msgspec.MsgspecError as error:
        raise TablesError(f"{place}: {error}; only `kbtools tables sync` writes it") from error


def write(config: Config, name: str, rows: Sequence[Release | Statement]) -> bool:
    """Writes a table; whether the file changed.

    Raises:
        OSError: it cannot be written.
    """
    content = b"".join(msgspec.json.encode(row, order="deterministic") + b"\n" for row in rows)
    file = file_of(config, name)
    if file.is_file() and file.read_bytes() == content:
        return False
    file.parent.mkdir(exist_ok=True)
    write_whole(file, content)
    return True
