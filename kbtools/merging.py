"""Evidence from other machines: what can be true is taken, what cannot is refused with a reason."""

from __future__ import annotations

import datetime
import json
import math
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec
from packaging.version import InvalidVersion, Version

from kbtools import evidence
from kbtools.article import Article, Snippet
from kbtools.config import Config, Unreadable
from kbtools.evidence import Row
from kbtools.judging import expect
from kbtools.running.output import SECRET
from kbtools.toolchain import Toolchain

SLACK = datetime.timedelta(hours=1)
"""By which the clock of another machine may be ahead."""


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
        Unreadable: there is none.
    """
    for path in paths:
        found = sorted(path.rglob("*.jsonl")) if path.is_dir() else [path]
        if not found or not path.exists():
            raise Unreadable(
                f"{path}: no evidence here (files named for an article, ending in .jsonl)"
            )
        yield from found


def examine(paths: Iterable[Path], articles: Iterable[Article], now: datetime.datetime) -> Merge:
    """Looks at every row of some files; nothing is taken of a file with a row that cannot be.

    Raises:
        Unreadable: a file cannot be read at all.
    """
    known = {one.id: one for one in articles}
    taken: list[tuple[str, Row]] = []
    refused: list[Refused] = []
    for path in files(paths):
        try:
            content = path.read_bytes()
        except OSError as error:
            raise Unreadable(f"{path}: {error}") from error
        sound: list[tuple[str, Row]] = []
        bad: list[Refused] = []
        for number, line in enumerate(content.split(b"\n")[:-1], 1):
            found = _row(line, known.get(path.stem), path.stem, now)
            if isinstance(found, Row):
                sound.append((path.stem, found))
            else:
                why, stale = found
                bad.append(Refused(str(path), number, why, stale))
        if not content.endswith(b"\n"):
            bad.append(Refused(str(path), content.count(b"\n") + 1, "the file is cut off"))
        refused += bad
        if all(one.stale for one in bad):
            taken += sound
    return Merge(tuple(taken), tuple(refused))


def write(merge: Merge, config: Config) -> int:
    """Adds the rows to the evidence, the newest of each key; how many changed it."""
    changed = 0
    for article, row in merge.rows:
        before = evidence.read(config.evidence, article)
        evidence.record(config.evidence, article, row, config.memory.parent / "locks")
        changed += evidence.read(config.evidence, article) != before
    return changed


def _row(
    line: bytes, article: Article | None, name: str, now: datetime.datetime
) -> Row | tuple[str, bool]:
    """The row of a line; or why it is refused, and whether it was true once."""
    try:
        row = msgspec.json.decode(line, type=Row)
        unknown = _more(json.loads(line), json.loads(msgspec.json.encode(row)))
    except (msgspec.MsgspecError, ValueError) as error:
        return f"not a row of evidence: {error}", False
    if unknown:
        return f"`{unknown}` is no part of a row: what follows from it is computed", False
    if row.schema != evidence.SCHEMA:
        return f"schema {row.schema}, this kbtools writes {evidence.SCHEMA}", False
    if article is None:
        return f"no article {name} here", True
    snippet = next((one for one in article.snippets if one.digest == row.code), None)
    if snippet is None:
        return f"no snippet of {name} has this code: {row.snippet} was edited since", True
    why = "; ".join(_implausible(row, snippet, now))
    return (why, False) if why else row


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
        for i, (one, other) in enumerate(zip(given, known, strict=False)):
            if more := _more(one, other, f"{at}[{i}]"):
                return more
    return ""


def _implausible(row: Row, snippet: Snippet, now: datetime.datetime) -> Iterator[str]:
    """What a run cannot have written."""
    outcome, toolchain = row.outcome, row.toolchain
    if row.when.tzinfo is None or row.when > now + SLACK:
        yield f"it was written at {row.when}, which is not yet"
    expected = expect(snippet, toolchain, snippet.keys.toolchain)
    if expected.what == "skip":
        yield f"that toolchain could not run it: {expected.reason}"
    yield from _no_toolchain(toolchain)
    if not _consistent(row):
        yield f"`{outcome.status}` does not go with exit {outcome.exit} and {outcome.signal}"
    if not (math.isfinite(outcome.seconds) and outcome.seconds >= 0):
        yield f"it took {outcome.seconds} seconds"
    if SECRET.search(outcome.output) or SECRET.search(outcome.message):
        yield "its output shows what looks like a secret"
    if row.isolation not in ("fork", "spawn"):
        yield f"`{row.isolation}` is no isolation"


def _consistent(row: Row) -> bool:
    outcome = row.outcome
    if outcome.status in ("passed", "stopped"):
        return outcome.exit == 0 and outcome.signal is None and not outcome.exceptions
    if outcome.status == "failed":
        return outcome.exit not in (None, 0) and outcome.signal is None
    if outcome.status == "signal":
        return outcome.signal is not None and outcome.exit is None
    return outcome.status in ("timeout", "limit") and outcome.exit is None


def _no_toolchain(toolchain: Toolchain) -> Iterator[str]:
    versions = {"python": toolchain.python, **toolchain.packages}
    if toolchain.cuda is not None:
        versions["cuda"] = toolchain.cuda
    for number, gpu in enumerate(toolchain.gpus):
        versions[f"gpus[{number}].sm"] = gpu.sm
    for name, version in versions.items():
        try:
            Version(version)
        except InvalidVersion:
            yield f"{name} `{version}` is no version"
    if toolchain.gpus and not toolchain.driver:
        yield "GPUs and no driver"
