"""No log takes long or breaks anything, at any door, whatever its shape and whoever wrote it."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest
from bases import KBTOOLS
from hostile_logs import ENOUGH, LOGS, ROOT, SIZE, SIZES, index_and_matcher

from kbtools.integrations import new_issue

SECONDS = 20.0
"""Of CPU, for one log. The promise is 2; benchmarks/diagnose.py measures it, where nothing traces
every line and no other test shares the processor. Here no log may take for ever.
"""


@pytest.mark.parametrize(("name", "size"), SIZES)
def test_the_matcher_ends(name: str, size: int) -> None:
    """Logs of any content have an end, and are no article."""
    _, matcher = index_and_matcher()
    log = LOGS[name](size)
    started = time.process_time()
    diagnosis = matcher.diagnose(log)
    assert time.process_time() - started < SECONDS
    if not name.startswith("literals"):
        assert diagnosis.matches == ()


def test_a_longer_log_takes_no_longer() -> None:
    """What is left out of ten megabytes costs nothing but the search for the ends of its lines."""
    _, matcher = index_and_matcher()
    log = LOGS["literals as errors"](SIZE)
    started = time.process_time()
    assert matcher.diagnose(log).matches
    assert time.process_time() - started < SECONDS


@pytest.mark.parametrize("name", LOGS)
def test_an_issue_is_answered_or_not(name: str) -> None:
    """The body of an issue, of the 65,536 characters that it may have, and of far more."""
    index, _ = index_and_matcher()
    index = msgspec.structs.replace(index, url="https://example.org/kb/")  # replies need one
    log = LOGS[name](ENOUGH)
    for size in (65_536, ENOUGH):
        issue = new_issue.Issue(1, name, log[:size], True)
        started = time.process_time()
        new_issue.reply_to(issue, index)
        assert time.process_time() - started < SECONDS


PROGRAM = "import sys; raise ValueError(sys.stdin.buffer.read().decode('utf-8', 'replace'))"
TEST = """
import os, pathlib, sys

def test_it():
    print(pathlib.Path(os.environ["LOG"]).read_text("utf-8", "replace"), file=sys.stderr)
    assert False
"""
PYTEST = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-q", "--show-capture=no"]
AGENT = """
import asyncio, os, pathlib, sys
from mcp import ClientSession, StdioServerParameters, stdio_client

async def talk():
    server = StdioServerParameters(command=sys.argv[1], args=sys.argv[2:])
    async with stdio_client(server) as (read, write), ClientSession(read, write) as session:
        await session.initialize()
        log = pathlib.Path(os.environ["LOG"]).read_text("utf-8", "replace")
        answer = await session.call_tool("diagnose", {"log": log})
        assert '"matches":[]' in answer.content[0].text, answer

asyncio.run(talk())
sys.exit(3)
"""
DOORS = {
    "diagnose": ([*KBTOOLS, "diagnose", "-"], 3),
    "run": ([*KBTOOLS, "run", "--", "sh", "-c", "cat >&2; exit 9"], 9),
    "hook": ([sys.executable, "-m", "kbtools.hook", "-c", PROGRAM], 1),
    "answer": ([*KBTOOLS, "answer", "--event", "event.json", "--reply", "reply.md"], 0),
    "pytest": ([*PYTEST, "--diagnose", "test_it.py"], 1),
    "mcp": ([sys.executable, "agent.py", *KBTOOLS, "mcp"], 3),
}
ALONE = {
    "hook": [sys.executable, "-c", PROGRAM],
    "pytest": [*PYTEST, "test_it.py"],
    "mcp": [sys.executable, "-c", "import mcp, mcp.server.mcpserver"],
}
"""What the others cost without us."""


def run_at_door(
    command: list[str], folder: Path, log: bytes
) -> tuple[subprocess.CompletedProcess[bytes], float]:
    """A command that has ended, and its seconds of CPU.

    `folder` is where it runs, and `log` what it reads from standard input.
    """
    environment = {
        **os.environ,
        "LOG": str(folder / "log"),
        "PYTHONPATH": str(ROOT),
        "KBTOOLS_INDEX": str(folder / "index.json"),
    }
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    process = subprocess.run(
        command, cwd=folder, env=environment, input=log, capture_output=True, timeout=120
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return process, after.ru_utime - before.ru_utime


CASES = [
    *((door, "binary", SIZE) for door in DOORS),
    *((door, log, ENOUGH) for door in ("diagnose", "run") for log in ("one line", "short lines")),
    *((door, "a title that never ends", ENOUGH) for door in ("run", "hook", "answer", "pytest")),
]


@pytest.mark.parametrize(("door", "name", "size"), CASES)
def test_every_door(door: str, name: str, size: int, tmp_path: Path) -> None:
    """In a process of its own each ends as it would, soon and without a traceback of ours."""
    if door == "mcp":
        pytest.importorskip("mcp", reason="the extra `mcp` is not installed")
    text = LOGS[name](size)
    log = text.encode("utf-8", "surrogatepass")
    (tmp_path / "log").write_bytes(log)
    index = msgspec.structs.replace(index_and_matcher()[0], url="https://kb.example.org")
    (tmp_path / "index.json").write_bytes(msgspec.json.encode(index))
    issue = {"number": 1, "title": "it fails", "body": text}
    (tmp_path / "event.json").write_text(json.dumps({"action": "opened", "issue": issue}))
    (tmp_path / "test_it.py").write_text(TEST)
    (tmp_path / "agent.py").write_text(AGENT)
    command, code = DOORS[door]
    _, alone = run_at_door(ALONE[door], tmp_path, log) if door in ALONE else (None, 0.0)
    process, seconds = run_at_door(command, tmp_path, log)
    assert seconds - alone < SECONDS
    assert process.returncode == code, process.stderr[-2000:]
    output = process.stderr + process.stdout
    assert b"kbtools:" not in output.replace(b"kbtools: failed first: ", b"")
    if door == "run":
        assert process.stderr == log
    elif door == "diagnose":
        assert process.stderr == b""
        assert len(process.stdout) < 1000
    elif door == "answer":
        assert process.stdout == b"sure=false\narticle=\n"
