"""Evidence from other machines: what no run can have written is refused, and changes nothing."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from bases import Base, fence

from kbtools import checks, config

Row = dict[str, Any]


@pytest.fixture
def recorded(base: Base) -> Base:
    """A knowledge base with two rows of evidence."""
    base.article(
        fence("python repro", "raise ValueError('the failure')"), fence("python fix", "pass")
    )
    base.article(
        fence("cuda repro requires=gpu", "int main() { return 1; }"),
        fence("python fix", "x = 2"),
        number=2,
    )
    assert base.verify("KB0001", "--record").code == 0
    return base


def change(name: str, value: object) -> Callable[[Row], None]:
    """Sets a key of a row, as in `outcome.status`."""

    def apply(row: Row) -> None:
        *path, last = name.split(".")
        for key in path:
            row = row[key]
        row[last] = value

    return apply


FORGED = [
    (change("verdict", "reproduced"), "`verdict` is no part of a row"),
    (change("outcome.verdict", "reproduced"), "`outcome.verdict` is no part of a row"),
    (change("schema", 99), "schema 99"),
    (change("when", "2999-01-01T00:00:00Z"), "which is not yet"),
    (change("when", "yesterday"), "not a row of evidence"),
    (change("outcome.exit", 0), "does not go with exit 0"),
    (change("outcome.status", "lost"), "`lost` does not go with"),
    (change("outcome.status", "fine"), "not a row of evidence"),
    (change("outcome.seconds", -1.0), "it took -1.0 seconds"),
    (change("toolchain.python", "three"), "python `three` is no version"),
    (change("toolchain.packages", {"torch": "newest"}), "torch `newest` is no version"),
    (change("toolchain.gpus", [{"name": "G", "sm": "9.0"}]), "GPUs and no driver"),
    (change("outcome.output", "token=abcdefgh12345678"), "looks like a secret"),
    (change("isolation", "none"), "`none` is no isolation"),
]


@pytest.mark.parametrize(("forge", "why"), FORGED, ids=[why for _, why in FORGED])
def test_forged(recorded: Base, tmp_path: Path, forge: Callable[[Row], None], why: str) -> None:
    """A file with a row that no run can have written is refused whole, with the reason."""
    rows = recorded.rows()
    forge(next(row for row in rows if row["outcome"]["status"] == "failed"))
    foreign = tmp_path / "KB0001.jsonl"
    foreign.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    file = recorded.root / "evidence" / "KB0001.jsonl"
    before = file.read_bytes()
    done = recorded.kbtools("evidence", "merge", str(foreign))
    assert done.code == 1
    assert why in done.err
    assert "refused whole" in done.err
    assert "0 rows taken" in done.out
    assert file.read_bytes() == before


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (lambda text: text[:-20], "the file is cut off"),
        (lambda text: text.replace("{", "<", 1), "not a row of evidence"),
        (lambda text: "\x00\n" * 3, "not a row of evidence"),
        (lambda text: "[]\n", "not a row of evidence"),
    ],
    ids=["cut off", "no JSON", "binary", "no object"],
)
def test_damaged(recorded: Base, tmp_path: Path, content: Callable[[str], str], why: str) -> None:
    """A truncated or foreign file is refused, and the evidence stays as it was."""
    file = recorded.root / "evidence" / "KB0001.jsonl"
    before = file.read_bytes()
    damaged = tmp_path / "KB0001.jsonl"
    damaged.write_text(content(before.decode()), "utf-8")
    done = recorded.kbtools("evidence", "merge", str(damaged))
    assert (done.code, file.read_bytes()) == (1, before)
    assert why in done.err


def test_what_could_not_run_there(recorded: Base, tmp_path: Path) -> None:
    """A row of a GPU's snippet from a machine without one is refused."""
    [row, *_] = recorded.rows()
    base = checks.load(config.find(recorded.root))
    row["code"] = base.articles[1].snippets[0].digest
    (tmp_path / "KB0002.jsonl").write_text(json.dumps(row) + "\n", "utf-8")
    done = recorded.kbtools("evidence", "merge", str(tmp_path / "KB0002.jsonl"))
    assert done.code == 1
    assert "that toolchain could not run it: needs 1 GPU, none here" in done.err


def test_stale_rows_are_left_out(recorded: Base, tmp_path: Path) -> None:
    """A row of a snippet that was edited since is left out, and spoils nothing."""
    rows = recorded.rows()
    rows[0]["code"] = "0" * 64
    foreign = tmp_path / "KB0001.jsonl"
    foreign.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    (recorded.root / "evidence" / "KB0001.jsonl").unlink()
    done = recorded.kbtools("evidence", "merge", str(foreign))
    assert (done.code, len(recorded.rows())) == (0, 1)
    assert "was edited since" in done.err
    assert "1 row taken, 1 of them new; 1 left out or refused" in done.out


def test_the_newest_counts(recorded: Base, tmp_path: Path) -> None:
    """Of two rows of one snippet on one toolchain the newer is kept, whichever comes last."""
    [newer, *_] = recorded.rows()
    older = {**newer, "when": "2020-01-01T00:00:00Z"}
    foreign = tmp_path / "KB0001.jsonl"
    foreign.write_text(f"{json.dumps(newer)}\n{json.dumps(older)}\n", "utf-8")
    assert recorded.kbtools("evidence", "merge", str(foreign)).code == 0
    assert newer in recorded.rows()
    assert older not in recorded.rows()


def test_nothing_there(recorded: Base, tmp_path: Path) -> None:
    """A path with no evidence cannot be read."""
    done = recorded.kbtools("evidence", "merge", str(tmp_path))
    assert done.code == 2
    assert "no evidence here" in done.err
