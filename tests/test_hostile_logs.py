"""No log takes long or breaks anything, at any door, whatever its shape and whoever wrote it."""

from __future__ import annotations

import json
import os
import random
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import pytest
from bases import KBTOOLS

from kbtools.integrations import new_issue
from kbtools.matching import Index, Matcher, load

ROOT = Path(__file__).parent.parent
SECONDS = 20.0
"""Of CPU, for one log. The promise is 2; benchmarks/diagnose.py measures it, where nothing traces
every line and no other test shares the processor. Here no log may take for ever.
"""
SIZE = 10_000_000


@cache
def known() -> tuple[Index, Matcher]:
    """The index of this knowledge base, and a matcher that has warmed up."""
    index = load(ROOT)
    matcher = Matcher(index)
    matcher.diagnose(filled("error: "))
    return index, matcher


def filled(piece: str, size: int = SIZE) -> str:
    """A text of that many characters, of one piece again and again."""
    return (piece * (size // len(piece) + 1))[:size]


def bytes_at_random() -> str:
    """What a binary file reads as."""
    return random.Random(1).randbytes(SIZE // 2).decode("utf-8", "replace")


def literals(between: str, before: str = "") -> str:
    """Every literal of every article, again and again."""
    index, _ = known()
    every = (one.literal for article in index.articles for one in article.signatures)
    return filled("".join(f"{before}{one}{between}" for one in every))


LOGS: dict[str, Callable[[], str]] = {
    "one line": lambda: "x" * SIZE,
    "one line of spaces": lambda: " " * SIZE,
    "short lines": lambda: "x\n" * 1_000_000,
    "empty lines": lambda: "\n" * SIZE,
    "carriage returns": lambda: filled("50%\r"),
    "binary": bytes_at_random,
    "zeros": lambda: "\0" * SIZE,
    "escapes that never end": lambda: filled("\x1b["),
    "a title that never ends": lambda: "\x1b]0;" + "x" * SIZE,
    "digits of a colour": lambda: "\x1b[" + "1;" * (SIZE // 2),
    "digits of a colour, cut off": lambda: filled("[1;1;1;1;1;1;1;1"),
    "written-out escapes": lambda: filled("\\x1b[1"),
    "literals on one line": lambda: literals(" "),
    "literals on lines": lambda: literals("\n"),
    "literals as errors": lambda: literals("\nRuntimeError: "),
    "literals in quotes": lambda: literals('" y\n', 'x "'),
    "literals among quotes": lambda: literals(" c d'" * 90 + "\n", "'a b " * 90),
    "literals after marks": lambda: literals(" #" * 200 + "\n", "* # " * 100),
    "literals after backslashes": lambda: literals("\\" * 380 + "\n", "\\" * 380),
    "literals after levels": lambda: literals(": " * 190 + "\n", "INFO: error(" * 33),
    "lines that are cut": lambda: filled(f"FAILED {'x.py' * 200} - {'a' * 900}...\n"),
    "line ends in strings": lambda: filled("a\\n"),
    "entities": lambda: filled("&amp;quot;"),
    "cells of a notebook": lambda: '"output_type":\n' + filled('"x\\n",\n'),
    "one endless cell": lambda: '"output_type":\n"' + "x" * SIZE,
    "literals behind calm levels": lambda: literals("\n", "INFO E  Error: \n" * 3 + "INFO probe "),
    "hosts": lambda: filled("a-1-b-2-c-3 "),
    "words that errors have": lambda: filled("Error: error: failed: "),
    "frames": lambda: filled('File "x.py", line 1, in f\n'),
    "names": lambda: filled("a" * 61 + " | "),
    "names of containers": lambda: filled("app-1-" * 9 + " " * 19 + "\n"),
    "times": lambda: filled("2026-01-01 00:00:00.000000 "),
    "ranks": lambda: filled("[rank0]: "),
    "processes": lambda: filled("(Worker pid=1"),
    "quoted": lambda: filled("> "),
    "versions": lambda: filled("torch==1.1.1.1"),
    "versions and spaces": lambda: filled("torch" + " " * 30),
    "paths": lambda: filled("/lib/python3.11"),
    "brackets": lambda: filled("[" * 50 + "]"),
    "fences": lambda: filled("```\n"),
    "backticks": lambda: filled("`"),
    "comments": lambda: filled("<!-- "),
    "surrogates": lambda: filled("\ud800\udfff"),
    "wide characters": lambda: filled("错误: "),
}


@pytest.mark.parametrize("name", LOGS)
def test_the_matcher_ends(name: str) -> None:
    """Ten megabytes of anything have an end, and are no article."""
    _, matcher = known()
    log = LOGS[name]()
    started = time.process_time()
    found = matcher.diagnose(log)
    assert time.process_time() - started < SECONDS
    if not name.startswith("literals"):
        assert found.matches == ()


@pytest.mark.parametrize("name", LOGS)
def test_an_issue_is_answered_or_not(name: str) -> None:
    """The body of an issue, of the 65,536 characters that it may have, and of far more."""
    index, _ = known()
    for size in (65_536, 2_000_000):
        one = new_issue.Issue(1, name, LOGS[name]()[:size], True)
        started = time.process_time()
        assert not new_issue.reply_to(one, index).reply
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


def seconds(command: list[str], folder: Path, given: bytes) -> tuple[Any, float]:
    """How a command ended in a folder, and its seconds of CPU."""
    environment = {
        **os.environ,
        "LOG": str(folder / "log"),
        "PYTHONPATH": str(ROOT),
        "KBTOOLS_INDEX": str(folder / "index.json"),
    }
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        command, cwd=folder, env=environment, input=given, capture_output=True, timeout=120
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return done, after.ru_utime - before.ru_utime


CASES = [
    *((door, log) for door in ("diagnose", "run") for log in ("one line", "short lines")),
    *((door, "binary") for door in DOORS),
    *((door, "a title that never ends") for door in ("run", "hook", "answer", "pytest")),
]


@pytest.mark.parametrize(("door", "log"), CASES)
def test_every_door(door: str, log: str, tmp_path: Path) -> None:
    """In a process of its own each ends as it would, soon and without a traceback of ours."""
    if door == "mcp":
        pytest.importorskip("mcp", reason="the extra `mcp` is not installed")
    text = LOGS[log]()
    given = text.encode("utf-8", "surrogatepass")
    (tmp_path / "log").write_bytes(given)
    index = msgspec.structs.replace(known()[0], url="https://kb.example.org")
    (tmp_path / "index.json").write_bytes(msgspec.json.encode(index))
    issue = {"number": 1, "title": "it fails", "body": text}
    (tmp_path / "event.json").write_text(json.dumps({"action": "opened", "issue": issue}))
    (tmp_path / "test_it.py").write_text(TEST)
    (tmp_path / "agent.py").write_text(AGENT)
    command, code = DOORS[door]
    _, alone = seconds(ALONE[door], tmp_path, given) if door in ALONE else (None, 0.0)
    done, taken = seconds(command, tmp_path, given)
    assert taken - alone < SECONDS
    assert done.returncode == code, done.stderr[-2000:]
    assert b"kbtools:" not in done.stderr + done.stdout
    if door == "run":
        assert done.stderr == given
    elif door == "diagnose":
        assert done.stderr == b""
        assert len(done.stdout) < 1000
    elif door == "answer":
        assert done.stdout == b"sure=false\narticle=\n"
