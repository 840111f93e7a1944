"""No log takes long or breaks anything, at any door, whatever its shape and whoever wrote it."""

from __future__ import annotations

import random
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from bases import KBTOOLS

from kbtools import answering
from kbtools.matching import Index, Matcher, load

ROOT = Path(__file__).parent.parent
SECONDS = 2.0
"""Of CPU, for one log."""
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


def literals(between: str) -> str:
    """Every literal of every article, again and again."""
    index, _ = known()
    every = (one.literal for article in index.articles for one in article.signatures)
    return filled(between.join(every) + between)


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
    """Ten megabytes of anything take the matcher less than two seconds of CPU."""
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
        one = answering.Issue(1, name, LOGS[name]()[:size], True)
        started = time.process_time()
        assert not answering.answer(one, index).reply
        assert time.process_time() - started < 2 * SECONDS  # it is looked at twice


DOORS = {
    "diagnose": [*KBTOOLS, "diagnose", "-"],
    "run": [*KBTOOLS, "run", "--", "sh", "-c", "cat >&2; exit 9"],
    "hook": [
        *(sys.executable, "-m", "kbtools.hook", "-c"),
        "import sys; raise ValueError(sys.stdin.buffer.read().decode('utf-8', 'replace'))",
    ],
}


@pytest.mark.parametrize("log", ["one line", "short lines", "binary", "a title that never ends"])
@pytest.mark.parametrize("door", DOORS)
def test_every_door(door: str, log: str) -> None:
    """In a process of its own each ends as it would, in a few seconds and without a traceback."""
    given = LOGS[log]().encode("utf-8", "surrogatepass")
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(DOORS[door], cwd=ROOT, input=given, capture_output=True, timeout=120)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert after.ru_utime - before.ru_utime < 3 * SECONDS
    assert done.returncode == {"diagnose": 3, "run": 9, "hook": 1}[door]
    assert b"kbtools:" not in done.stderr
    if door == "run":
        assert done.stderr == given
    elif door == "diagnose":
        assert done.stderr == b""
        assert len(done.stdout) < 1000
