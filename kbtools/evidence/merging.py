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
from kbtools.evidence.store import Row

LARGEST = 64 << 20
"""Bytes of an evidence file."""
LARGEST_ROW = 1 << 20
"""Bytes of a row: of a snippet's output far less is kept."""


class NotEvidence(Exception):
    """A file that cannot be evidence, whatever is in it."""


class Refused(msgspec.Struct, frozen=True):
    """A row that is not taken, and why."""

    file: str
    line: int
    why: str
    stale: bool = False
    """It was true once: the snippet was edited, or its article renamed, since."""


class Merge(msgspec.Struct, frozen=True):
    """What is taken of some files, and what is not."""

    rows: tuple[tuple[str, Row], ...]
    """Id of the article, and the row."""
    refused: tuple[Refused, ...]

    @property
    def forged(self) -> tuple[Refused, ...]:
        """What no run can have written: nothing of its file is taken."""
        return tuple(one for one in self.refused if not one.stale)


def files(paths: Iterable[Path]) -> Iterator[Path]:
    """The evidence files that paths name: themselves, or those of a folder.

    Raises:
        KbtoolsError: there is none.
    """
    for path in paths:
        found = sorted(path.rglob("*.jsonl")) if path.is_dir() else [path]
        if not found or not (path.exists() or path.is_symlink()):
            raise KbtoolsError(
                f"{path}: no evidence here (files named for an article, ending in .jsonl)"
            )
        yield from found


def examine(paths: Iterable[Path], articles: Iterable[Article], now: datetime.datetime) -> Merge:
    """Looks at every row of some files; nothing is taken of a file with a row that cannot be.

    Raises:
        KbtoolsError: a file cannot be read at all.
    """
    known = {one.id: one for one in articles}
    taken: list[tuple[str, Row]] = []
    refused: list[Refused] = []
    for path in files(paths):
        name = shown(str(path))
        try:
            content = _content(path)
        except NotEvidence as error:
            refused.append(Refused(name, 1, str(error)))
            continue
        except OSError as error:
            raise KbtoolsError(f"{name}: {error}") from error
        sound: list[tuple[str, Row]] = []
        bad: list[Refused] = []
        for number, line in enumerate(content.split(b"\n")[:-1], 1):
            found = _row(line, known.get(path.stem), path.stem, now)
            if isinstance(found, Row):
                sound.append((path.stem, found))
            else:
                why, stale = found
                bad.append(Refused(name, number, why, stale))
        if not content.endswith(b"\n"):
            bad.append(Refused(name, content.count(b"\n") + 1, "the file is cut off"))
        refused += bad
        if all(one.stale for one in bad):
            taken += sound
    return Merge(tuple(taken), tuple(refused))


def write(merge: Merge, config: Config) -> int:
    """Adds the rows to the evidence, the newest of each key; how many changed it."""
    changed = 0
    for article, row in merge.rows:
        before = store.read(config.evidence, article)
        store.record(config.evidence, article, row, config)
        changed += store.read(config.evidence, article) != before
    return changed


def _content(path: Path) -> bytes:
    """What is in an evidence file.

    Raises:
        NotEvidence: it is a link, no plain file, or too large.
        OSError: it cannot be read.
    """
    if path.is_symlink():
        raise NotEvidence("a link: evidence is a plain file")
    # not to wait for a pipe, nor to follow a link that took the file's place meanwhile
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    with os.fdopen(descriptor, "rb") as stream:
        found = os.fstat(stream.fileno())
        if not stat.S_ISREG(found.st_mode):
            raise NotEvidence("no plain file")
        content = stream.read(LARGEST + 1)
    if len(content) > LARGEST:
        raise NotEvidence(f"more than {LARGEST >> 20} MiB: no evidence of one article is as much")
    return content


def _row(
    line: bytes, article: Article | None, name: str, now: datetime.datetime
) -> Row | tuple[str, bool]:
    """The row of a line; or why it is refused, and whether it was true once."""
    if len(line) > LARGEST_ROW:
        return f"a row of {len(line)} bytes: a run keeps less of its output", False
    try:
        row = msgspec.json.decode(line, type=Row)
        given = json.loads(line, object_pairs_hook=_once)
        unknown = _more(given, json.loads(msgspec.json.encode(row)))
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        return f"not a row of evidence: {shown(str(error))}", False
    if unknown:
        return f"`{shown(unknown)}` is no part of a row: what follows from it is computed", False
    if row.schema not in store.SCHEMAS:
        return f"schema {row.schema}, this kbtools writes {store.SCHEMA}", False
    if article is None:
        return f"no article {shown(name)} here", True
    snippet = next((one for one in article.snippets if one.digest == row.code), None)
    if snippet is None:
        was = shown(row.snippet)
        return f"no snippet of {name} has this code: {was} was edited since", True
    why = "; ".join(implausibilities(row, snippet, now))
    return (shown(why), False) if why else row


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """An object of JSON, none of whose keys is there twice: readers differ on which one counts."""
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = next(key for n, (key, _) in enumerate(pairs) if key in dict(pairs[:n]))
        raise ValueError(f"`{twice}` is there twice")
    return found


def _more(given: object, known: object, at: str = "") -> str:
    """The first key of `given` that `known` has not, with its path; empty when there is none."""
    if isinstance(given, dict) and isinstance(known, dict):
        for key, value in given.items():
            path = f"{at}.{key}".lstrip(".")
            if key not in known:
                return path
            if more := _more(value, known[key], path):
                return more
    if isinstance(given, list) and isinstance(known, list):
        for i, (one, other) in enumerate(zip(given, known, strict=True)):
            if more := _more(one, other, f"{at}[{i}]"):
                return more
    return ""


def shown(text: str) -> str:
    """A text of strangers, as it may be printed: on one line, and no terminal obeys it."""
    return "".join(c if c.isprintable() else "�" for c in text[:300])
