"""What finished is kept, and nothing else stays: under Ctrl-C, `kill -9`, two runs, a full disk."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest
from bases import KBTOOLS, Base, fence

QUICK = tuple(fence(f"python control id=q{i}", f"assert {i} < 4") for i in range(4))
SLOW = tuple(
    fence(
        f"python control id=s{i}",
        "import subprocess, sys\n\nsubprocess.run([sys.executable, '-c', 'input()'], stdin=-1)\n"
        "import time\n\ntime.sleep(300)",
    )
    for i in range(3)
)


def interrupted(base: Base, number: signal.Signals, *, group: bool) -> tuple[int, str, str]:
    """Starts a run with `--record`, and sends a signal when the quick snippets are recorded."""
    base.article(*QUICK, *SLOW)
    process = base.start("verify", "--record", "-j", "2")
    file = base.root / "evidence" / "KB0001.jsonl"
    deadline = time.monotonic() + 30
    while not file.exists() or len(base.rows()) < len(QUICK) or len(base.running()) < 6:
        assert time.monotonic() < deadline
        assert process.poll() is None
        time.sleep(0.02)
    time.sleep(0.5)  # a row is written before its result is told
    (os.killpg if group else os.kill)(process.pid, number)
    started = time.monotonic()
    out, err = process.communicate(timeout=20)
    assert time.monotonic() - started < 5
    return process.returncode, out, err


@pytest.mark.parametrize("group", [True, False], ids=["the group", "the process"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run(base: Base, number: signal.Signals, group: bool) -> None:
    """Ctrl-C, or a CI that cancels: all ends at once, what finished is kept, no file is left."""
    code, out, err = interrupted(base, number, group=group)
    assert (code, base.running()) == (130, [])
    assert {row["snippet"] for row in base.rows()} == {"q0", "q1", "q2", "q3"}
    assert list(base.temporary.iterdir()) == []
    assert "Traceback" not in out + err
    assert "interrupted: 4 of 7 finished, and kept" in err


def test_a_killed_run(base: Base) -> None:
    """`kill -9` of kbtools ends its snippets within seconds, and the evidence is whole."""
    code, _, _ = interrupted(base, signal.SIGKILL, group=False)
    assert code == -signal.SIGKILL
    assert base.running_after(5) == []
    assert {row["snippet"] for row in base.rows()} == {"q0", "q1", "q2", "q3"}
    assert [file.name for file in (base.root / "evidence").iterdir()] == ["KB0001.jsonl"]
    assert base.verify("KB0001/q1").code == 0, "no lock is left that nobody holds"


def test_two_runs_at_once(base: Base) -> None:
    """Two runs that record the same article at the same time lose no row of each other."""
    names = [f"c{i}" for i in range(30)]
    base.article(*(fence(f"python control id={n}", f"assert '{n}'") for n in names))
    words = [[f"KB0001/{name}" for name in half] for half in (names[:15], names[15:])]
    runs = [base.start("verify", "--record", "-j", "4", *half) for half in words]
    assert [run.communicate(timeout=60)[1] for run in runs] == ["", ""]
    assert sorted(row["snippet"] for row in base.rows()) == sorted(names)


def test_a_newer_row_takes_the_place_of_an_older(base: Base) -> None:
    """Evidence has one row for a snippet's code on a toolchain, however often it was run."""
    base.article(*QUICK)
    for _ in range(2):
        base.verify("--record", "--all")
    assert [row["snippet"] for row in base.rows()] == ["q0", "q1", "q2", "q3"]


def on_a_small_disk(
    base: Base, mount: Path, size: str, *words: str
) -> subprocess.CompletedProcess[str]:
    """Runs `kbtools` with a disk of that size mounted on a folder, its files copied there."""
    mount.mkdir(exist_ok=True)
    script = (
        f"cp -a {mount} {base.temporary}/copy && mount -t tmpfs -o size={size} none {mount} && "
        f"cp -a {base.temporary}/copy/. {mount} && rm -r {base.temporary}/copy && "
        f'"$@"; status=$?; echo; ls -A {mount}; cat {mount}/*.jsonl; exit $status'
    )
    command = ["unshare", "-Urm", "sh", "-c", script, "sh", *KBTOOLS, "-C", str(base.root), *words]
    return subprocess.run(
        command, env=base.environment(), capture_output=True, text=True, timeout=60, check=False
    )


@pytest.fixture
def mounts() -> None:
    """Skips where a namespace with a mount of its own is refused."""
    trial = ["unshare", "-Urm", "sh", "-c", "mount -t tmpfs none /mnt"]
    if (
        not shutil.which("unshare")
        or subprocess.run(trial, check=False, capture_output=True).returncode
    ):
        pytest.skip("this kernel allows no mount to an ordinary user")


@pytest.mark.usefixtures("mounts")
def test_a_full_disk_for_evidence(base: Base) -> None:
    """When evidence cannot be written one message says so, and what was there still is."""
    base.article(fence("python control id=first", "assert True"))
    base.verify("--record")
    evidence = base.root / "evidence"
    old = (evidence / "KB0001.jsonl").read_text("utf-8")
    large = "print('x' * 20_000)"
    base.article(fence("python control id=a", large), fence("python control id=b", large + " "))
    finished = on_a_small_disk(base, evidence, "16k", "verify", "--record")
    assert finished.returncode == 2
    assert finished.stdout.endswith(f"\n\nKB0001.jsonl\n{old}"), "no other file, this one as it was"
    assert "No space left on device" in finished.stdout + finished.stderr
    assert "Traceback" not in finished.stderr


@pytest.mark.usefixtures("mounts")
@pytest.mark.parametrize("files", [4, 10], ids=["at once", "at the first snippet"])
def test_a_full_disk_for_scratch(base: Base, files: int) -> None:
    """When no temporary file can be made nothing is concluded, and one message says why."""
    base.article(*QUICK)
    full = base.temporary / "full"
    full.mkdir()
    mounted = f'mount -t tmpfs -o size=8m,nr_inodes={files} none {full} && "$@"; status=$?; '
    ends = f'test -z "$(ls -A {full})" && echo all clean; exit $status'
    finished = subprocess.run(
        ["unshare", "-Urm", "sh", "-c", mounted + ends, "sh", *KBTOOLS, "-C", base.root, "verify"],
        env=base.environment(TMPDIR=str(full)),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    output = finished.stdout + finished.stderr
    assert finished.returncode == (2 if files == 4 else 3), output
    assert "No space left on device" in output
    assert "Traceback" not in output
    assert finished.stdout.endswith("all clean\n")


@pytest.mark.parametrize("words", [("list",), ("rules",), ("schema",), ("verify",), ("env",)])
def test_a_reader_that_leaves(base: Base, words: tuple[str, ...]) -> None:
    """Into a pipe that nobody reads any more, a command writes no traceback."""
    base.article(*QUICK)
    process = base.start(*words)
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    assert process.stderr.read() == ""
    process.wait(30)
    process.stderr.close()
    assert base.running() == []
