"""`kbtools score --threads`: texts outside of the repository are scored, and not kept."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from kbtools.cli import main
from kbtools.matching import Matcher, load, threads

ROOT = Path(__file__).parent.parent
SECRET = "a name that must not be kept"
TEXTS = {
    "o/a#1": f"{SECRET}\nRuntimeError: mat1 and mat2 must have the same dtype, but got Half",
    "o/a#2": "AssertionError: Torch not compiled with CUDA enabled",
    "o/a#3": "KeyError: 'x'",
    "o/a#4": "epoch 3, loss 0.2",
    "o/a#5": "RuntimeError: Expected all tensors to be on the same device",
}
POINTERS = [
    {"thread": "o/a#1", "expected": ["KB0044"], "split": "learn", "first": 2},
    {"thread": "o/a#2", "expected": []},
    {"thread": "o/a#3", "expected": ["KB0001"], "first": threads.digest("  KeyError: 'x'\n")},
    {"thread": "o/a#4", "expected": []},
    {
        "thread": "o/a#5",
        "expected": ["KB0007"],
        "first": [threads.digest("x"), threads.digest("y")],
    },
    {"thread": "o/a#6", "expected": ["KB0007"]},
]


@pytest.fixture
def pointers(tmp_path: Path) -> Path:
    """A file of pointers; the texts of all but the last lie in the folder beside it."""
    (tmp_path / "texts").mkdir()
    for thread, text in TEXTS.items():
        (tmp_path / "texts" / threads.Pointer(thread, ()).file).write_text(text)
    file = tmp_path / "pointers.jsonl"
    file.write_text("".join(json.dumps(pointer) + "\n" for pointer in POINTERS))
    return file


def test_every_thread_has_a_verdict(pointers: Path) -> None:
    """Right, a false alarm, missed, quiet, wrong; and a missing text is counted by name."""
    texts = pointers.parent / "texts"
    rows = tuple(threads.rows(threads.pointers(pointers), texts, Matcher(load(ROOT))))
    assert [row.verdict for row in rows] == [
        "right", "false alarm", "missed", "quiet", "wrong", "no text",
    ]  # fmt: skip
    result = threads.shares(rows)
    assert (result.threads, result.failures, result.right, result.answered) == (5, 3, 1, 3)
    assert (result.sure, result.surely_wrong) == (3, 2)
    allowed = threads.Pointer("o/a#2", (), allowed=("KB0046",))
    [row] = threads.rows([allowed], texts, Matcher(load(ROOT)))
    assert row.verdict == "allowed"
    assert (threads.shares([row]).answered, threads.shares([row]).sure) == (0, 0)
    either = threads.Pointer(
        "o/a#3", (), first=(threads.digest("x"), threads.digest("KeyError: 'x'"))
    )
    [row] = threads.rows([either], texts, Matcher(load(ROOT)))
    assert row.first == "right"
    logged = "[rank0]: KeyError: 'x'"
    (texts / "o__a__3.txt").write_text(logged)
    for line in (logged, "KeyError: 'x'"):
        [row] = threads.rows(
            [threads.Pointer("o/a#3", (), first=threads.digest(line))], texts, Matcher(load(ROOT))
        )
        assert row.first == "right"
    assert result.no_text == ("o/a#6",)
    assert [row.first for row in rows] == [
        "right",
        "unknown",
        "right",
        "unknown",
        "wrong",
        "unknown",
    ]
    assert (result.firsts, result.firsts_right, result.firsts_surely_wrong) == (3, 2, 1)
    assert result.confused["none → KB0046"] == 1
    assert (result.recall, result.precision) == (1 / 3, 1 / 3)


def test_what_is_printed_holds_no_text(pointers: Path) -> None:
    """The lines and the rows name threads and articles, and nothing that stands in a text."""
    words = ["-C", str(ROOT), "score", "--threads", str(pointers)]
    words += ["--texts", str(pointers.parent / "texts")]
    for form in ([], ["--json"]):
        result = CliRunner().invoke(main, [*words, *form])
        assert result.exit_code == 0, result.output
        assert SECRET not in result.output
        assert "o/a#6" in result.output
    assert json.loads(result.output)["rows"][0]["verdict"] == "right"


def test_a_pointer_that_cannot_be_read_is_named(pointers: Path) -> None:
    """The error names the file, the line and what a line looks like."""
    pointers.write_text('{"thread": "o/a#1", "expected": []}\n{"thread": 3}\n')
    with pytest.raises(threads.PointersError, match=r"pointers.jsonl:2: .*owner/repo#12"):
        threads.pointers(pointers)
