"""Evidence from other machines: what no run can have written is refused, and changes nothing."""

from __future__ import annotations

import datetime
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from bases import Base, fence

from kbtools import config
from kbtools.checks.base import load_base
from kbtools.evidence import merging
from kbtools.evidence.state import observations

Row = dict[str, Any]


@pytest.fixture(scope="module")
def two_rows(new_base: Callable[..., Base]) -> Base:
    """A knowledge base with two rows of evidence, which no test changes."""
    base = new_base()
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


@pytest.fixture
def recorded(two_rows: Base, base: Base) -> Base:
    """A knowledge base with two rows of evidence."""
    shutil.copytree(two_rows.root, base.root, dirs_exist_ok=True)
    return base


def change(name: str, value: object) -> Callable[[Row], None]:
    """Sets a key of a row, as in `outcome.status`."""

    def apply(row: Row) -> None:
        *path, last = name.split(".")
        for key in path:
            row = row[key]
        row[last] = value

    return apply


def drop_isolation(row: Row) -> None:
    """Removes the isolation from a row's outcome, as in a row of schema 1."""
    del row["outcome"]["isolation"]


H200 = {"name": "NVIDIA H200", "sm": "9.0"}
FORGED = [
    (change("verdict", "reproduced"), "unknown key `verdict`"),
    (change("outcome.verdict", "reproduced"), "unknown key `outcome.verdict`"),
    (change("schema", 99), "schema 99"),
    (change("when", "2999-01-01T00:00:00Z"), "which is in the future"),
    (change("when", "yesterday"), "not a row of evidence"),
    (change("outcome.exit", 0), "contradicts exit 0"),
    (change("outcome.status", "lost"), "status `lost` contradicts"),
    (change("outcome.status", "fine"), "not a row of evidence"),
    (change("outcome.seconds", -1.0), "it took -1.0 seconds"),
    (change("toolchain.python", "three"), "python `three` is not a version"),
    (change("toolchain.packages", {"torch": "newest"}), "torch `newest` is not a version"),
    (change("toolchain.gpus", [{"name": "G", "sm": "9.0"}]), "it has GPUs and no driver"),
    (change("outcome.output", "token=abcdefgh12345678"), "looks like a secret"),
    (change("isolation", "none"), "not a row of evidence"),
    (change("isolation", "spawn"), "schema 2 has no `isolation` beside its outcome"),
    (change("outcome.isolation", "none"), "not a row of evidence"),
    (drop_isolation, "`outcome.isolation` of a Python snippet is missing"),
    (change("schema", 1), "schema 1 has no `outcome.isolation`"),
    (change("snippet", "../../r1"), "`../../r1` is not the id of a snippet"),
    (change("kbtools", "mine"), "kbtools `mine` is not a version"),
    (change("helper", "0" * 64), "the snippet does not import kbtools.repro"),
    (change("outcome.exit", 256), "contradicts exit 256"),
    (change("outcome.exit", 10**30), "contradicts exit 1000"),
    (change("outcome.signal", "SIGFAKE"), "contradicts exit 1 and signal SIGFAKE"),
    (change("outcome.status", "passed"), "status `passed` contradicts exit 1"),
    (change("outcome.seconds", 1e7), "it took 10000000.0 seconds"),
    (change("outcome.cpu_seconds", -1.0), "it took -1.0 seconds of CPU"),
    (change("outcome.peak_mib", -1.0), "it took -1.0 MiB"),
    (change("outcome.exceptions", ["os.system('x')"]), "the name of an exception is not one"),
    (change("outcome.message", "x" * 5_000), "its message has 5000 characters"),
    (change("outcome.output", "x" * (1 << 20)), "a run keeps less of its output"),
    (change("outcome.unsandboxed", "no\nsandbox"), "`outcome.unsandboxed` is not a message"),
    (change("outcome.targets", ["sm_90\x1b[31m"]), "is not an architecture"),
    (change("toolchain.driver", "new"), "driver `new` is not a version"),
    (change("toolchain.packages", {"../x": "1.0"}), "`../x` is not the canonical name"),
    (
        change("toolchain.packages", {"verdict": "reproduced"}),
        "verdict `reproduced` is not a version",
    ),
    (
        change("toolchain.kernel", "6.1\x1b]0;x\x07"),
        "a description of the machine is too long, unprintable",
    ),
    (change("toolchain.gpus", [H200 | {"sm": "7.5"}]), "H200 has compute capability 9.0, not 7.5"),
    (change("toolchain.gpus", [H200 | {"sm": "9.0a1"}]), "`9.0a1` is not a compute capability"),
    (
        change("toolchain.gpus", [H200 | {"verdict": "holds"}]),
        "unknown key `toolchain.gpus[0].verdict`",
    ),
    (change("\x1b[31mred", 1), "unknown key `�[31mred`"),
]


@pytest.mark.parametrize(
    ("forge", "reason"), FORGED, ids=[reason.replace("/", " ") for _, reason in FORGED]
)
def test_forged(recorded: Base, tmp_path: Path, forge: Callable[[Row], None], reason: str) -> None:
    """A file with a row that no run can have written is refused whole, with the reason."""
    rows = recorded.rows()
    forge(next(row for row in rows if row["outcome"]["status"] == "failed"))
    foreign = tmp_path / "KB0001.jsonl"
    foreign.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    file = recorded.root / "evidence" / "KB0001.jsonl"
    before = file.read_bytes()
    done = recorded.kbtools("evidence", "merge", str(foreign))
    assert done.code == 1
    assert reason in done.err
    assert "the whole file is refused" in done.err
    assert "0 rows taken" in done.out
    assert file.read_bytes() == before


def test_rows_of_schema_1_are_taken(recorded: Base, tmp_path: Path) -> None:
    """Rows that were written before the isolation was recorded are taken, in the same bytes."""
    rows = recorded.rows()
    for row in rows:
        drop_isolation(row)
        row["schema"] = 1
    rows[0]["isolation"] = "spawn"
    lines = [json.dumps(row, separators=(",", ":"), ensure_ascii=False) for row in rows]
    foreign = tmp_path / "KB0001.jsonl"
    foreign.write_text("".join(f"{line}\n" for line in lines), "utf-8")
    file = recorded.root / "evidence" / "KB0001.jsonl"
    file.unlink()
    done = recorded.kbtools("evidence", "merge", str(foreign))
    assert (done.code, file.read_text("utf-8")) == (0, foreign.read_text("utf-8")), done.err
    assert "2 rows taken" in done.out


def test_a_shell_has_no_isolation(base: Base, tmp_path: Path) -> None:
    """A row that names the isolation of a shell script is refused."""
    base.article(fence("bash control id=c1", "true"))
    assert base.verify("--record").code == 0
    [row] = base.rows()
    row["outcome"]["isolation"] = "fork"
    foreign = tmp_path / "KB0001.jsonl"
    foreign.write_text(json.dumps(row) + "\n", "utf-8")
    done = base.kbtools("evidence", "merge", str(foreign))
    assert done.code == 1
    assert "a bash snippet has no `outcome.isolation`" in done.err


DEEP = b"[" * 100_000 + b"]" * 100_000


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda content: content[:-20], "the file is cut off"),
        (lambda content: content.replace(b"{", b"<", 1), "not a row of evidence"),
        (lambda content: b"\x00\n" * 3, "not a row of evidence"),
        (lambda content: b"[]\n", "not a row of evidence"),
        (lambda content: b"", "the file is cut off"),
        (
            lambda content: content.replace(b'{"schema":2', b'{"schema":9,"schema":2', 1),
            "is given twice",
        ),
        (
            lambda content: content.replace(b'"exit":1', b'"exit":0,"exit":1'),
            "`exit` is given twice",
        ),
        (lambda content: b"\xef\xbb\xbf" + content, "not a row of evidence"),
        (lambda content: content.decode().encode("utf-16"), "not a row of evidence"),
        (
            lambda content: content.replace(b"the failure", b"the \xff failure"),
            "not a row of evidence",
        ),
        (lambda content: content.replace(b"}\n", b',"x":"\xff"}\n', 1), "not a row of evidence"),
        (lambda content: content.replace(b"the failure", b"\\ud800"), "not a row of evidence"),
        (
            lambda content: content.replace(b"}\n", b',"x":' + DEEP + b"}\n", 1),
            "not a row of evidence",
        ),
        (lambda content: content.replace(b'"exit":1', b'"exit":NaN'), "not a row of evidence"),
        (lambda content: content[: len(content) // 2] + b"\n", "not a row of evidence"),
    ],
    ids=[
        *("cut off", "no JSON", "binary", "no object", "empty", "key twice", "inner key twice"),
        *("BOM", "UTF-16", "no UTF-8", "no UTF-8 beside", "surrogate", "deep", "NaN", "cut row"),
    ],
)
def test_damaged(
    recorded: Base, tmp_path: Path, damage: Callable[[bytes], bytes], reason: str
) -> None:
    """A truncated or foreign file is refused, and the evidence stays as it was."""
    file = recorded.root / "evidence" / "KB0001.jsonl"
    before = file.read_bytes()
    damaged = tmp_path / "KB0001.jsonl"
    damaged.write_bytes(damage(before))
    done = recorded.kbtools("evidence", "merge", str(damaged))
    assert (done.code, file.read_bytes()) == (1, before)
    assert reason in done.err


@pytest.mark.parametrize("kind", ["link", "link in a folder", "dangling", "pipe", "device"])
def test_no_plain_file(recorded: Base, tmp_path: Path, kind: str) -> None:
    """Nothing is read through a link, a pipe or a device: it is refused at once."""
    file = recorded.root / "evidence" / "KB0001.jsonl"
    foreign = tmp_path / "foreign" / "KB0001.jsonl"
    foreign.parent.mkdir()
    if kind == "pipe":
        os.mkfifo(foreign)
    else:
        to = {"dangling": "/no/such/file", "device": "/dev/zero"}.get(kind, str(file))
        foreign.symlink_to(to)
    before = file.read_bytes()
    path = foreign.parent if kind == "link in a folder" else foreign
    done = recorded.kbtools("evidence", "merge", str(path), timeout=30)
    assert (done.code, file.read_bytes()) == (1, before)
    assert ("not a plain file" if kind == "pipe" else "a link") in done.err


def test_a_file_that_is_too_large(recorded: Base, tmp_path: Path) -> None:
    """A file far larger than evidence can be is refused, and not kept in memory."""
    foreign = tmp_path / "KB0001.jsonl"
    with foreign.open("wb") as stream:
        stream.truncate(1 << 40)  # takes no room on the disk
    done = recorded.kbtools("evidence", "merge", str(foreign), timeout=30)
    assert done.code == 1
    assert "more than 64 MiB" in done.err


def test_a_name_that_is_no_article(recorded: Base, tmp_path: Path) -> None:
    """A file's name leads nowhere but to an article of this base, and no terminal obeys it."""
    content = (recorded.root / "evidence" / "KB0001.jsonl").read_bytes()
    before = sorted(recorded.root.rglob("*"))
    for name in ("..KB0001.jsonl", "KB0001\x1b[31m.jsonl", "kb0001.jsonl", "KB0001.x.jsonl"):
        (tmp_path / name).write_bytes(content)
    done = recorded.kbtools("evidence", "merge", str(tmp_path))
    assert "0 rows taken" in done.out
    assert "\x1b[31m." not in done.out + done.err
    assert sorted(recorded.root.rglob("*")) == before


def test_our_own_evidence_is_plausible(tmp_path: Path) -> None:
    """Every row that this knowledge base holds passes as one that a run has written."""
    base = load_base(config.find(Path(__file__).parent))
    now = datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=3650)
    examined = merging.examine([base.config.evidence], base.articles, now)
    assert len(examined.rows) > 1000
    assert examined.forgeries == ()


def test_no_claim_of_ours_is_contradicted() -> None:
    """What this knowledge base says today agrees with all that its runs did."""
    base = load_base(config.find(Path(__file__).parent))
    red = [
        (observation.snippet.name, observation.verdict.reason)
        for article in base.articles
        for observation in observations(article, base.config)
        if observation.verdict.colour == "red"
    ]
    assert red == []


def test_a_toolchain_that_cannot_run_the_snippet(recorded: Base, tmp_path: Path) -> None:
    """A row of a GPU's snippet from a machine without one is refused."""
    [row, *_] = recorded.rows()
    base = load_base(config.find(recorded.root))
    row["code"] = base.articles[1].snippets[0].digest
    (tmp_path / "KB0002.jsonl").write_text(json.dumps(row) + "\n", "utf-8")
    done = recorded.kbtools("evidence", "merge", str(tmp_path / "KB0002.jsonl"))
    assert done.code == 1
    assert "its toolchain cannot run the snippet: needs 1 GPU, none here" in done.err


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


def test_pruning(recorded: Base) -> None:
    """The rows of an edited snippet are dropped by `evidence prune`; the others stay."""
    rows = recorded.rows()
    rows[0]["code"] = "0" * 64
    file = recorded.root / "evidence" / "KB0001.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    dry = recorded.kbtools("evidence", "prune", "--dry-run")
    assert (dry.code, len(recorded.rows())) == (0, len(rows))
    assert f"KB0001/{rows[0]['snippet']}  " in dry.out
    assert "1 row would be dropped" in dry.out
    done = recorded.kbtools("evidence", "prune")
    assert (done.code, recorded.rows()) == (0, rows[1:])
    assert "1 row dropped" in done.out


def test_the_newest_counts(recorded: Base, tmp_path: Path) -> None:
    """Of two rows of one snippet on one toolchain the newer is kept, whichever comes last."""
    [newer, *_] = recorded.rows()
    older = {**newer, "when": "2020-01-01T00:00:00Z"}
    foreign = tmp_path / "KB0001.jsonl"
    foreign.write_text(f"{json.dumps(newer)}\n{json.dumps(older)}\n", "utf-8")
    assert recorded.kbtools("evidence", "merge", str(foreign)).code == 0
    assert newer in recorded.rows()
    assert older not in recorded.rows()


def test_no_evidence(recorded: Base, tmp_path: Path) -> None:
    """A path with no evidence cannot be read."""
    done = recorded.kbtools("evidence", "merge", str(tmp_path))
    assert done.code == 2
    assert "no evidence here" in done.err
