"""A zygote, spoken to as the executor does: one request a line, one report a line.

It has the environment of the tests, so that coverage is measured in its processes. The zygotes of
an executor have not: nothing of the tests may reach a snippet there.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kbtools.running.protocol import Ready, Report
from kbtools.running.zygote_process import ZYGOTE

GIB = 1 << 30


class Zygote:
    """A zygote that the test has started, and the folder of its runs."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.number = folder, 0
        (folder / "tmp").mkdir()
        self.process = subprocess.Popen(
            [sys.executable, str(ZYGOTE), "csv,locale:format_string", str(folder), "[]"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert self.process.stdin is not None and self.process.stdout is not None
        self.stdin, self.stdout = self.process.stdin, self.process.stdout
        self.ready = msgspec.json.decode(self.stdout.readline(), type=Ready)

    def send(self, source: str, **changes: Any) -> Path:
        """Sends a request, with these of its keys changed; the scratch folder of the run."""
        self.number += 1
        scratch = self.folder / f"run{self.number}"
        (scratch / "work").mkdir(parents=True)
        (scratch / "tmp").mkdir()
        (scratch / "snippet").write_text(source, "utf-8")
        limits = {"memory": 4 * GIB, "file": GIB, "processes": 20, "user_processes": 5000}
        request = {
            "id": self.number,
            "language": "python",
            "isolation": "fork",
            "tool": [],
            "commands": [],
            "file": str(scratch / "snippet"),
            "scratch": str(scratch),
            "work": str(scratch / "work"),
            "modules": str(self.folder),
            "output": str(scratch / "output"),
            "shared_tmp": str(self.folder / "tmp"),
            "env": dict(os.environ),
            "timeout": 30.0,
            "limits": limits,
            "sandbox": False,
            "network": False,
        }
        self.stdin.write(json.dumps(request | changes).encode() + b"\n")
        self.stdin.flush()
        return scratch

    def report(self) -> Report:
        """The next report."""
        return msgspec.json.decode(self.stdout.readline(), type=Report)

    def run(self, source: str, **changes: Any) -> tuple[Report, str]:
        """Has a snippet run; the report, and what it printed."""
        scratch = self.send(source, **changes)
        report = self.report()
        output = scratch / "output"
        return report, output.read_text("utf-8") if output.exists() else ""


@pytest.fixture
def zygote(tmp_path: Path) -> Iterator[Zygote]:
    """A zygote; when the test ends, it ends by itself and removes its folder."""
    folder = tmp_path / "runs"
    folder.mkdir()
    zygote = Zygote(folder)
    yield zygote
    zygote.stdin.close()
    assert zygote.process.wait(30) == 0
    assert not folder.exists()


def test_it_says_what_it_could_not_import(zygote: Zygote) -> None:
    """The first line has the parts of the sandbox and the modules that could not be imported."""
    assert set(zygote.ready["sandbox"]) == {"network", "sight", "files", "signals"}
    assert list(zygote.ready["refused"]) == ["locale:format_string"]


@pytest.mark.parametrize("isolation", ["fork", "spawn"])
def test_a_snippet_that_passes(zygote: Zygote, isolation: str) -> None:
    """The report has its status, what it used, and how its process was made."""
    report, output = zygote.run("print(__file__)", isolation=isolation)
    assert (report["wait"], report["ending"], report["isolation"]) == (0, {"end": True}, isolation)
    assert report["peak_kib"] > 1000 and 0 < report["seconds"] < 30
    assert 0 < report["cpu_seconds"] < 30
    assert output.endswith("/snippet\n")


@pytest.mark.parametrize("isolation", ["fork", "spawn"])
def test_a_snippet_that_raises(zygote: Zygote, isolation: str) -> None:
    """The report names the exception, its bases and its text."""
    report, output = zygote.run("class Own(OSError): pass\nraise Own('text')", isolation=isolation)
    assert report["wait"] == 1 << 8
    bases = ["Own", "OSError", "Exception", "BaseException"]
    assert report["ending"] == {"raised": bases, "message": "text"}
    assert output.startswith("Traceback (most recent call last):\n")


@pytest.mark.parametrize(("source", "code"), [("raise SystemExit", 0), ("exit('why')", 1)])
def test_a_snippet_that_exits(zygote: Zygote, source: str, code: int) -> None:
    """An exit is no end: the report does not say that the last line was reached."""
    report, _ = zygote.run(source)
    assert (report["wait"], report["ending"]) == (code << 8, {})


def test_a_snippet_that_is_too_slow(zygote: Zygote) -> None:
    """It is ended at its limit, with what it started."""
    source = "import subprocess\nsubprocess.run(['sleep', '60'])"
    report, _ = zygote.run(source, timeout=0.5)
    assert (report["status"], report["message"]) == ("timeout", "time limit of 0.5 s")
    assert report["seconds"] < 20


def test_cpu_seconds_of_what_it_leaves_behind(zygote: Zygote) -> None:
    """CPU time counts that of a process that the snippet neither waited for nor ended."""
    source = """
        import os, time
        reading, writing = os.pipe()
        if os.fork() == 0:
            while time.process_time() < 0.3: pass
            os.write(writing, b"burnt")
            time.sleep(60)
        os.read(reading, 5)
    """
    report, _ = zygote.run(textwrap.dedent(source))
    assert report["ending"] == {"end": True}
    assert report["cpu_seconds"] >= 0.3
    report, _ = zygote.run("x = 1")
    assert report["cpu_seconds"] < 0.3, "not that of the keeper's earlier snippets"


def test_a_snippet_with_too_many_processes(zygote: Zygote) -> None:
    """It is ended when a keeper next looks."""
    source = "import os, time\nfor _ in range(6): os.fork()\ntime.sleep(60)"
    report, _ = zygote.run(source)
    assert (report["status"], report["message"]) == ("limit", "limit of 20 processes")


def test_a_tool_that_does_not_exist(zygote: Zygote) -> None:
    """A snippet that cannot be started is lost, and no isolation is reported."""
    report, _ = zygote.run("pass", isolation="spawn", tool=["no-such-tool"])
    assert report["status"] == "lost" and "no-such-tool is not on the PATH" in report["message"]
    assert "isolation" not in report


def shell(source: str) -> Callable[[Zygote], tuple[Report, str]]:
    """Runs a shell script as a snippet."""

    def run(zygote: Zygote) -> tuple[Report, str]:
        file = zygote.folder / f"run{zygote.number + 1}" / "snippet"
        changes = {"language": "bash", "isolation": None, "commands": [["bash", "-eu", str(file)]]}
        return zygote.run(source, **changes)

    return run


def test_a_shell_script(zygote: Zygote) -> None:
    """A script reaches its end, or ends with the status of what failed."""
    report, output = shell("echo text")(zygote)
    assert (report["wait"], report["ending"], output) == (0, {"end": True}, "text\n")
    report, _ = shell("exit 3")(zygote)
    assert (report["wait"], report["ending"], report["isolation"]) == (3 << 8, {}, None)


def test_commands_end_at_the_first_that_fails(zygote: Zygote) -> None:
    """As for CUDA, where a compiler makes what is then run."""
    words = {"language": "cuda", "isolation": None}
    report, output = zygote.run("", commands=[["echo", "first"], ["echo", "second"]], **words)
    assert (report["ending"], output) == ({"end": True}, "first\nsecond\n")
    report, output = zygote.run("", commands=[["false"], ["echo", "second"]], **words)
    assert (report["wait"], report["ending"], output) == (1 << 8, {}, "")
    report, _ = zygote.run("", commands=[["bash", "-c", "kill -SEGV $$"]], **words)
    assert os.waitstatus_to_exitcode(report["wait"] or 0) == -11


def test_several_at_once(zygote: Zygote) -> None:
    """Each of several requests is reported, whichever ends first."""
    numbers = {zygote.number + i for i in range(1, 5)}
    for _ in numbers:
        zygote.send("pass")
    assert {zygote.report()["id"] for _ in numbers} == numbers


def test_its_end_ends_what_still_runs(zygote: Zygote) -> None:
    """A snippet that runs when standard input is closed is reported as lost."""
    scratch = zygote.send("open('begun', 'w')\nimport time\ntime.sleep(60)")
    deadline = time.monotonic() + 20
    while not (scratch / "work/begun").exists():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    zygote.stdin.close()
    report = zygote.report()
    assert (report["status"], report["message"]) == ("lost", "cancelled")
