"""Logs of a shape that could take a matcher long, each of as many characters as asked for."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import cache
from pathlib import Path

from kbtools.matching import Index, Matcher, load
from kbtools.matching.cleaning import HEAD, TAIL

ROOT = Path(__file__).parent.parent
SIZE = 10_000_000
"""Characters of a log in the benchmark, and in one case of each door."""
ENOUGH = HEAD + TAIL + 100_000
"""Characters of some logs: the middle of each is left out, as of a longer log."""
SHORTER = 300_000
"""Characters of every log: what takes the square of a length takes 90 billion steps for it."""


@cache
def index_and_matcher() -> tuple[Index, Matcher]:
    """The index of this knowledge base, and a matcher that has warmed up."""
    index = load(ROOT)
    matcher = Matcher(index)
    matcher.diagnose(filled("error: ", ENOUGH))
    return index, matcher


def filled(piece: str, size: int) -> str:
    """A text of that many characters: a piece again and again."""
    return (piece * (size // len(piece) + 1))[:size]


def repeated(piece: str) -> Callable[[int], str]:
    """What makes a log of one piece, again and again."""
    return lambda size: filled(piece, size)


def after(start: str, piece: str) -> Callable[[int], str]:
    """What makes a log of a start, and a piece again and again."""
    return lambda size: start + filled(piece, size)


def bytes_at_random(size: int) -> str:
    """What a binary file reads as."""
    return random.Random(1).randbytes(size // 2).decode("utf-8", "replace")


def literals(between: str, before: str = "") -> Callable[[int], str]:
    """What makes a log of every literal of every article, again and again."""

    def log(size: int) -> str:
        index, _ = index_and_matcher()
        signatures = (signature for entry in index.articles for signature in entry.signatures)
        return filled("".join(f"{before}{sig.literal}{between}" for sig in signatures), size)

    return log


LOGS: dict[str, Callable[[int], str]] = {
    "one line": repeated("x"),
    "one line of spaces": repeated(" "),
    "short lines": repeated("x\n"),
    "empty lines": repeated("\n"),
    "carriage returns": repeated("50%\r"),
    "binary": bytes_at_random,
    "zeros": repeated("\0"),
    "escapes that never end": repeated("\x1b["),
    "a title that never ends": after("\x1b]0;", "x"),
    "digits of a colour": after("\x1b[", "1;"),
    "digits of a colour, cut off": repeated("[1;1;1;1;1;1;1;1"),
    "written-out escapes": repeated("\\x1b[1"),
    "literals on one line": literals(" "),
    "literals on lines": literals("\n"),
    "literals as errors": literals("\nRuntimeError: "),
    "literals in quotes": literals('" y\n', 'x "'),
    "literals among quotes": literals(" c d'" * 90 + "\n", "'a b " * 90),
    "literals after marks": literals(" #" * 200 + "\n", "* # " * 100),
    "literals after backslashes": literals("\\" * 380 + "\n", "\\" * 380),
    "literals after levels": literals(": " * 190 + "\n", "INFO: error(" * 33),
    "lines that are cut": repeated(f"FAILED {'x.py' * 200} - {'a' * 900}...\n"),
    "line ends in strings": repeated("a\\n"),
    "entities": repeated("&amp;quot;"),
    "blanks of an address": repeated("%20%22"),
    "cells of a notebook": after('"output_type":\n', '"x\\n",\n'),
    "one endless cell": after('"output_type":\n"', "x"),
    "literals behind calm levels": literals("\n", "INFO E  Error: \n" * 3 + "INFO probe "),
    "hosts": repeated("a-1-b-2-c-3 "),
    "words that errors have": repeated("Error: error: failed: "),
    "frames": repeated('File "x.py", line 1, in f\n'),
    "names": repeated("a" * 61 + " | "),
    "names of containers": repeated("app-1-" * 9 + " " * 19 + "\n"),
    "times": repeated("2026-01-01 00:00:00.000000 "),
    "ranks": repeated("[rank0]: "),
    "processes": repeated("(Worker pid=1"),
    "quoted": repeated("> "),
    "versions": repeated("torch==1.1.1.1"),
    "versions and spaces": repeated("torch" + " " * 30),
    "distributions": repeated("nvidia-cuda-nvrtc nvidia.cuda_nvrtc-"),
    "paths": repeated("/lib/python3.11"),
    "brackets": repeated("[" * 50 + "]"),
    "fences": repeated("```\n"),
    "backticks": repeated("`"),
    "comments": repeated("<!-- "),
    "surrogates": repeated("\ud800\udfff"),
    "wide characters": repeated("错误: "),
}
"""What makes a log of so many characters."""
CUT = ("binary", "literals on one line", "literals as errors", "line ends in strings")
SIZES = [*((name, SHORTER) for name in LOGS), *((name, ENOUGH) for name in CUT)]
"""Every log, and some whose middle is left out, with their characters."""
