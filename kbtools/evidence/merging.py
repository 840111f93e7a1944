"""Evidence from other machines: what can be true is taken, what cannot is refused with a reason."""

from __future__ import annotations

import datetime
import json
import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from kbtools.articles.model import Article
from kbtools.config import Config, KbtoolsError
from kbtools.evidence import store
from kbtools.evidence.plausibility import implausibilities
from kbtools.evidence.rows import SCHEMAS, Row

LARGEST = 64 << 20
"""Bytes of an evidence file."""
LARGEST_ROW = 1 << 20
"""Bytes of a row: of a snippet's output far less is kept."""


class MergeError(KbtoolsError):
    """A path holds no evidence, or cannot be read."""


class _NotEvidence(Exception):
    """A file that cannot be evidence, whatever is in it."""


class Refusal(msgspec.Struct, frozen=True):
    """A row that is not taken, and why."""

    file: str
    line: int
    reason: str
    is_stale: bool = False
    """The row was true once: its snippet was edited, or its article renamed, since."""


class Merge(msgspec.Struct, frozen=True):
    """What is taken of some files, and what is not."""

    rows: tuple[tuple[str, Row], ...]
    """Id of the article, and the row."""
    refusals: tuple[Refusal, ...]

    @property
    def forgeries(self) -> tuple[Refusal, ...]:
        """Rows that no run can have written: nothing of their files is taken."""
        return tuple(refusal for refusal in self.refusals if not refusal.is_stale)


def files(paths: Iterable[Path]) -> Iterator[Path]:
    """The evidence files that paths name: themselves, or those of a folder.

    Raises:
        MergeError: a path holds none.
    """
    for path in paths:
        names = sorted(path.rglob("*.jsonl")) if path.is_dir() else [path]
        if not names or not (path.exists() or path.is_symlink()):
            raise MergeError(
                f"{path}: no evidence here (files named for an article, ending in .jsonl)"
            )
        yield from names


def examine(paths: Iterable[Path], articles: Iterable[Article], now: datetime.datetime) -> Merge:
    """Examines every row of some files. If a run cannot have written a row, its file is refused.

    Args:
        paths: Files named for an article, or folders of them.
        articles: The articles of this knowledge base.
        now: Rows from after this time are refused.

    Raises:
        MergeError: a file cannot be read at all.
    """
    by_id = {article.id: article for article in articles}
    rows: list[tuple[str, Row]] = []
    refusals: list[Refusal] = []
    for path in files(paths):
        sound, refused = _examine_file(path, by_id.get(path.stem), now)
        refusals += refused
        if all(refusal.is_stale for refusal in refused):
            rows += [(path.stem, row) for row in sound]
    return Merge(tuple(rows), tuple(refusals))


def write(merge: Merge, config: Config) -> int:
    """Adds the rows to the evidence, the newest of each key.

    Returns:
        How many of them changed the evidence.

    Raises:
        OSError: a file could not be written.
        EvidenceError: a file of the evidence cannot be read, and is left alone.
    """
    return sum(store.record(config.evidence, article, row, config) for article, row in merge.rows)


def _examine_file(
    path: Path, article: Article | None, now: datetime.datetime
) -> tuple[list[Row], list[Refusal]]:
    """The rows of a file that can be true, and the refusals of all others."""
    name = printable(str(path))
    try:
        content = _content(path)
    except _NotEvidence as error:
        return [], [Refusal(name, 1, str(error))]
    except OSError as error:
        raise MergeError(f"{name}: {error}") from error
    rows: list[Row] = []
    refusals: list[Refusal] = []
    for number, line in enumerate(content.split(b"\n")[:-1], 1):
        reason, is_stale = "", False
        row = _row(line)
        if isinstance(row, str):
            reason = row
        elif article is None:
            reason = f"this knowledge base has no article {printable(path.stem)}"
            is_stale = True
        else:
            reason, is_stale = _objection(row, article, now)
        if reason:
            refusals.append(Refusal(name, number, reason, is_stale))
        elif isinstance(row, Row):
            rows.append(row)
    if not content.endswith(b"\n"):
        refusals.append(Refusal(name, content.count(b"\n") + 1, "the file is cut off"))
    return rows, refusals


def _content(path: Path) -> bytes:
    """The content of an evidence file.

    Raises:
        _NotEvidence: it is a link, no plain file, or too large.
        OSError: it cannot be read.
    """
    if path.is_symlink():
        raise _NotEvidence("a link: evidence is a plain file")
    # not to wait for a pipe, nor to follow a link that took the file's place meanwhile
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    with os.fdopen(descriptor, "rb") as stream:
        if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
            raise _NotEvidence("not a plain file")
        content = stream.read(LARGEST + 1)
    if len(content) > LARGEST:
        limit = f"more than {LARGEST >> 20} MiB"
        raise _NotEvidence(f"{limit}, the limit for the evidence of one article")
    return content


def _row(line: bytes) -> Row | str:
    """The row of a line, or why the line is none."""
    if len(line) > LARGEST_ROW:
        return f"a row of {len(line)} bytes: a run keeps less of its output"
    try:
        row = msgspec.json.decode(line, type=Row)
        values = json.loads(line, object_pairs_hook=_without_duplicates)
        unknown = _unknown_key(values, json.loads(msgspec.json.encode(row)))
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        return f"not a row of evidence: {printable(str(error))}"
    if unknown:
        return f"unknown key `{printable(unknown)}`"
    if row.schema not in SCHEMAS:
        schemas = " and ".join(map(str, SCHEMAS))
        return f"schema {row.schema}; this kbtools reads {schemas}"
    return row


def _objection(row: Row, article: Article, now: datetime.datetime) -> tuple[str, bool]:
    """Why a row is not taken (empty: it is), and whether it was true once."""
    snippet = next((s for s in article.snippets if s.digest == row.code), None)
    if snippet is None:
        name = printable(row.snippet)
        return f"no snippet of {article.id} has this code; {name} was edited since the run", True
    return printable("; ".join(implausibilities(row, snippet, now))), False


def _without_duplicates(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """An object of JSON.

    Raises:
        ValueError: a key is given twice. Readers differ on which of the values counts.
    """
    values: dict[str, object] = {}
    for key, value in pairs:
        if key in values:
            raise ValueError(f"`{key}` is given twice")
        values[key] = value
    return values


def _unknown_key(value: object, row: object, path: str = "") -> str:
    """The path of the first key in a value that is not in a row; empty if there is none.

    Args:
        value: What was read, or a part of it.
        row: What the row that was decoded from it is written as, or the same part of that.
        path: Where the part is, as in `toolchain.gpus[0]`.
    """
    if isinstance(value, dict) and isinstance(row, dict):
        for key, inner in value.items():
            inner_path = f"{path}.{key}".lstrip(".")
            if key not in row:
                return inner_path
            if unknown := _unknown_key(inner, row[key], inner_path):
                return unknown
    if isinstance(value, list) and isinstance(row, list):
        for i, (inner, inner_row) in enumerate(zip(value, row, strict=True)):
            if unknown := _unknown_key(inner, inner_row, f"{path}[{i}]"):
                return unknown
    return ""


def printable(text: str) -> str:
    """A text of strangers, as it may be printed: on one line, and no terminal obeys it."""
    return "".join(c if c.isprintable() else "�" for c in text[:300])
