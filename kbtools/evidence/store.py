"""Rows of evidence: what a run did, on which toolchain, when. Written by runs only."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path

import msgspec
from filelock import FileLock

from kbtools.articles.model import Snippet
from kbtools.config import Config
from kbtools.evidence.decoded import DecodedFiles
from kbtools.evidence.rows import EvidenceError, Row, decode_rows
from kbtools.files import write_whole

_decoded = DecodedFiles(decode_rows)


def file_of(folder: Path, article: str) -> Path:
    """Where the rows of an article are."""
    return folder / f"{article}.jsonl"


def read(folder: Path, article: str) -> tuple[Row, ...]:
    """The rows of an article; none if there is no file.

    A file is decoded once, and again when it has changed.

    Raises:
        EvidenceError: the file cannot be read, or a line is not a row.
    """
    file = file_of(folder, article)
    try:
        return _decoded.rows(file)
    except FileNotFoundError:
        return ()
    except OSError as error:
        raise EvidenceError(f"{file}: {error}") from error


def of_snippet(rows: tuple[Row, ...], snippet: Snippet) -> tuple[Row, ...]:
    """The rows that count for a snippet: those of the very code it has now.

    A snippet with `toolchain=` may have a twin for another toolchain, with the same code and
    another claim. For such a snippet only rows that were recorded under its own id count.
    """
    digest, any_name = snippet.digest, snippet.keys.toolchain is None
    return tuple(
        row for row in rows if row.code == digest and (any_name or row.snippet == snippet.id)
    )


def record(folder: Path, article: str, row: Row, config: Config) -> bool:
    """Adds a row, in place of an older one of the same key.

    The file is written whole and renamed into place, under a lock: a crash, a full disk or a
    second run beside this one loses no row.

    Args:
        folder: Holds a file for each article; created if it does not exist.
        article: Id of the article.
        row: What the run did.
        config: Of the knowledge base, which also has a folder for locks.

    Returns:
        Whether the evidence changed. A row does not replace a newer one, nor itself.

    Raises:
        OSError: the file could not be written, and is as it was.
        EvidenceError: the file cannot be read, and is left alone.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with _lock(folder, article, config):
        rows = {older.key: older for older in read(folder, article)}
        if row.key in rows and not _supersedes(row, rows[row.key]):
            return False
        rows[row.key] = row
        _write(file_of(folder, article), rows.values(), config)
        return True


def prune(folder: Path, article: str, digests: Collection[str], config: Config) -> tuple[Row, ...]:
    """Drops the rows of an article whose code no snippet has any more.

    Args:
        folder: Holds a file for each article.
        article: Id of the article.
        digests: Those of the snippets that the article has now.
        config: Of the knowledge base, which also has a folder for locks.

    Returns:
        The rows that were dropped.

    Raises:
        OSError: the file could not be written, and is as it was.
        EvidenceError: the file cannot be read, and is left alone.
    """
    with _lock(folder, article, config):
        rows = read(folder, article)
        dropped = tuple(row for row in rows if row.code not in digests)
        if dropped:
            _write(file_of(folder, article), [row for row in rows if row.code in digests], config)
    return dropped


def _lock(folder: Path, article: str, config: Config) -> FileLock:
    locks = config.memory.parent / "locks"
    locks.mkdir(parents=True, exist_ok=True)
    return FileLock(locks / f"{folder.name}-{article}.lock")


def _write(file: Path, rows: Iterable[Row], config: Config) -> None:
    headline = config.toolchain.headline
    ordered = sorted(rows, key=lambda row: (row.snippet, row.toolchain.label(headline), *row.key))
    write_whole(file, b"".join(msgspec.json.encode(row) + b"\n" for row in ordered))


def _supersedes(row: Row, older: Row) -> bool:
    """Whether a row replaces an older one of its key.

    Rows of the same second are ordered by content, so that merging in any order gives one file.
    """
    return (row.when, msgspec.json.encode(row)) > (older.when, msgspec.json.encode(older))
