"""Data files that snippets share: `kb/files/`, of which a snippet gets copies by `files="…"`."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from pathlib import Path

from kbtools.config import Config, KbtoolsError

NAME = re.compile(r"[A-Za-z0-9_][\w.-]*")
"""Of a data file: no folder, nothing hidden, nothing that a shell or an address would change."""
LARGEST = 4 << 20
"""Bytes of a data file: it is in every checkout, and in every wheel that has the base in it."""


class DataFileError(KbtoolsError):
    """A data file is not what it was when the article that names it was read."""


def words_of(text: str) -> tuple[str, ...]:
    """The names in a fence's `files="orders.csv prices.csv"`, each once."""
    return tuple(dict.fromkeys(text.split()))


def path_of(config: Config, name: str) -> Path | None:
    """The data file of that name; None if there is none.

    A link is none: it could lead to a file that nobody meant to show to a snippet.
    """
    path = config.data_files / name
    expected = config.articles.resolve() / config.data_files.name / name
    is_here = bool(NAME.fullmatch(name)) and path.is_file() and path.resolve() == expected
    return path if is_here else None


def available(config: Config) -> tuple[str, ...]:
    """The names of the data files, in order."""
    names = sorted(path.name for path in config.data_files.glob("*"))
    return tuple(name for name in names if path_of(config, name))


def digests_of(config: Config, names: Iterable[str]) -> dict[str, str]:
    """Name → SHA-256 of the data files of these names; without those that there are not.

    Raises:
        OSError: the system cannot read one.
    """
    paths = {name: path_of(config, name) for name in names}
    return {name: digest(path.read_bytes()) for name, path in paths.items() if path}


def digest(content: bytes) -> str:
    """The SHA-256 of a data file."""
    return hashlib.sha256(content).hexdigest()


def contents(config: Config, digests: dict[str, str]) -> dict[str, bytes]:
    """Name → content of the data files with these digests.

    Raises:
        DataFileError: one was changed or deleted after its digest was taken.
    """
    files: dict[str, bytes] = {}
    for name, expected in digests.items():
        try:
            files[name] = (config.data_files / name).read_bytes()
        except OSError as error:
            raise DataFileError(f"{error}; next: restore the file, or verify again") from error
        if digest(files[name]) != expected:
            path = (config.data_files / name).relative_to(config.root).as_posix()
            raise DataFileError(f"{path} has changed since the article was read; verify again")
    return files
