"""Rows of evidence: one for each key, the newest, in the same bytes whoever recorded first."""

from __future__ import annotations

import datetime
import itertools
from pathlib import Path

import msgspec
import pytest

from kbtools.articles.model import ALWAYS, Keys, Place, Role, Snippet
from kbtools.config import Config, decode
from kbtools.evidence.rows import EvidenceError, Row, decode_rows
from kbtools.evidence.store import file_of, of_snippet, prune, read, record
from kbtools.outcome import Outcome
from kbtools.toolchains.model import Toolchain

OLD = Toolchain("3.11.7", {"triton": "2.3.1"})
NEW = Toolchain("3.11.7", {"triton": "3.7.1"}, kernel="6.1")


def row(snippet: str = "r1", toolchain: Toolchain = OLD, day: int = 1, code: str = "c0de") -> Row:
    """A row recorded on a day of January."""
    return Row(
        schema=1,
        snippet=snippet,
        code=code,
        toolchain=toolchain,
        outcome=Outcome("failed", exit=day, output="error: 它失败\n\x1b[0m\N{LINE SEPARATOR}"),
        when=datetime.datetime(2026, 1, day, tzinfo=datetime.UTC),
        kbtools="0.1",
    )


def config_in(folder: Path) -> Config:
    """The configuration of a knowledge base in that folder."""
    text = '[knowledge-base]\nname = "a test"\nprefix = "KB"\n[toolchain]\nheadline = ["triton"]\n'
    return decode(text, folder)


def write(folder: Path, *rows: Row) -> bytes:
    """Records rows in this order; what the file holds then."""
    for new in rows:
        record(folder, "KB0001", new, config_in(folder.parent))
    return file_of(folder, "KB0001").read_bytes()


def test_round_trip(tmp_path: Path) -> None:
    """What was recorded is read again, and takes one line whatever the output holds."""
    rows = (row(), row(toolchain=NEW))
    assert write(tmp_path / "evidence", *rows).count(b"\n") == 2
    assert read(tmp_path / "evidence", "KB0001") == rows
    assert read(tmp_path / "evidence", "KB0002") == ()


def test_isolation_of_schema_1(tmp_path: Path) -> None:
    """A row of schema 1 without the key was not recorded; `spawn` is what it says, and stays."""
    not_recorded = row()
    spawned = msgspec.structs.replace(row(toolchain=NEW), requested_isolation="spawn")
    content = write(tmp_path / "evidence", not_recorded, spawned)
    assert [kept.isolation for kept in read(tmp_path / "evidence", "KB0001")] == [None, "spawn"]
    assert content.count(b'"isolation":"spawn"}\n') == content.count(b"isolation") == 1


def test_newer_replaces_older(tmp_path: Path) -> None:
    """Of two runs of one code on one toolchain the newer stays, in whatever order they come."""
    kernel = msgspec.structs.replace(OLD, kernel="5.4")
    for i, rows in enumerate(
        itertools.permutations([row(), row(day=3, toolchain=kernel), row(day=2)])
    ):
        write(tmp_path / str(i), *rows)
        assert [kept.outcome.exit for kept in read(tmp_path / str(i), "KB0001")] == [3]


def test_one_row_for_each_key(tmp_path: Path) -> None:
    """Another toolchain, or other code, is another row."""
    write(
        tmp_path / "e", row(), row(toolchain=NEW), row(code="edited"), row(snippet="f1", code="f")
    )
    assert len(read(tmp_path / "e", "KB0001")) == 4


def test_same_bytes_in_any_order(tmp_path: Path) -> None:
    """The order in which rows were recorded is not to be seen in the file."""
    rows = [row(), row(toolchain=NEW), row(code="edited", day=2), row(snippet="f1", code="f")]
    orders = enumerate(itertools.permutations(rows))
    assert len({write(tmp_path / str(i), *order) for i, order in orders}) == 1


def test_recording_again_changes_nothing(tmp_path: Path) -> None:
    """A row that is there already leaves the file as it is, and no other file beside it."""
    once = write(tmp_path / "evidence", row(), row(toolchain=NEW))
    assert write(tmp_path / "evidence", row()) == once
    assert not record(tmp_path / "evidence", "KB0001", row(), config_in(tmp_path))
    assert record(tmp_path / "evidence", "KB0001", row(day=2), config_in(tmp_path))
    assert [file.name for file in (tmp_path / "evidence").iterdir()] == ["KB0001.jsonl"]


@pytest.mark.parametrize(
    "line", [b"", b"{", b"[]", b'{"schema": 1}', b"\xff", b"<<<<<<< HEAD"], ids=repr
)
def test_unreadable_line(line: bytes, tmp_path: Path) -> None:
    """A line that is no row is named by its number, and the file is left as it is."""
    folder = tmp_path / "evidence"
    content = write(folder, row()) + line + b"\n"
    file_of(folder, "KB0001").write_bytes(content)
    with pytest.raises(EvidenceError, match=r"KB0001\.jsonl:2: not a row of evidence"):
        read(folder, "KB0001")
    with pytest.raises(EvidenceError):
        write(folder, row(toolchain=NEW))
    assert file_of(folder, "KB0001").read_bytes() == content


def test_a_folder_in_its_place(tmp_path: Path) -> None:
    """What is there and cannot be opened is not taken for no evidence."""
    (tmp_path / "KB0001.jsonl").mkdir()
    with pytest.raises(EvidenceError, match="KB0001"):
        read(tmp_path, "KB0001")


def test_pruning_keeps_what_counts(tmp_path: Path) -> None:
    """Rows of these codes stay as they are, byte for byte; the others are dropped and returned."""
    kept = write(tmp_path / "evidence", row(), row(toolchain=NEW))
    write(tmp_path / "evidence", stale := row(code="01d"))
    assert prune(tmp_path / "evidence", "KB0001", {"c0de"}, config_in(tmp_path)) == (stale,)
    assert file_of(tmp_path / "evidence", "KB0001").read_bytes() == kept
    assert prune(tmp_path / "evidence", "KB0001", {"c0de"}, config_in(tmp_path)) == ()
    assert prune(tmp_path / "evidence", "KB0002", set(), config_in(tmp_path)) == ()


def test_edited_code_has_no_evidence() -> None:
    """A row counts for the very code that was run, whatever the snippet is called now."""

    def snippet(code: str, name: str = "r1") -> Snippet:
        place = Place("kb/KB0001-a.md", 9)
        return Snippet("KB0001", name, Role.REPRO, "python", code, place, Keys(), ALWAYS)

    rows = (row(code=snippet("a = 1\n").digest), row(code=snippet("a = 2\n").digest, toolchain=NEW))
    assert of_snippet(rows, snippet("a = 1\n")) == rows[:1]
    assert of_snippet(rows, snippet("a = 2\n", "renamed")) == rows[1:]
    assert of_snippet(rows, snippet("a = 3\n")) == ()


def test_twins_on_two_toolchains() -> None:
    """Of two snippets of the same code, each for a toolchain of its own, each has its own rows."""
    place = Place("kb/KB0001-a.md", 9)
    fails, passes = (
        Snippet("KB0001", name, role, "python", "a = 1\n", place, Keys(toolchain=where), ALWAYS)
        for name, role, where in (("r1", Role.REPRO, "old"), ("c1", Role.CONTROL, "new"))
    )
    assert fails.digest == passes.digest
    rows = (row(code=fails.digest), row("c1", NEW, code=fails.digest))
    assert (of_snippet(rows, fails), of_snippet(rows, passes)) == (rows[:1], rows[1:])


def test_a_toolchain_that_stands_above(tmp_path: Path) -> None:
    """In an extract a number stands for the toolchain of a row above; no other number does."""
    rows = read(Path(__file__).parent.parent / "evidence", "KB0002")[:2]
    first, second = (msgspec.json.decode(msgspec.json.encode(row)) for row in rows)
    lines = [first, {**second, "toolchain": 0}]
    content = b"\n".join(map(msgspec.json.encode, lines))
    decoded = decode_rows(content, "file")
    assert decoded == (rows[0], msgspec.structs.replace(rows[1], toolchain=rows[0].toolchain))
    for wrong in (1, 7):
        content = b"\n".join(map(msgspec.json.encode, [first, {**second, "toolchain": wrong}]))
        with pytest.raises(EvidenceError, match="file:2: not a row of evidence"):
            decode_rows(content, "file")
