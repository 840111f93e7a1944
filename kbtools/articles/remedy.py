"""The fix in short: a command, the lines in which the fix differs from a repro, or a program."""

from __future__ import annotations

import difflib
import re
import shlex
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Literal

import msgspec

from kbtools.articles.links import slug
from kbtools.articles.model import Role, Snippet
from kbtools.articles.parsing import Page

SHELL = ("bash", "sh", "shell", "console")
COMPARED = 12
"""Repros that a fix is compared with, at most."""
COMPARABLE = 200
"""Lines of a program that is compared, at most: this takes the square of them."""

IMPORT = re.compile(r"(import|from|#include) ")
"""The beginning of an import, which every program has: it is not what makes the difference."""

Sign = Literal["+", "-", " ", "…"]
"""Only in the fix, only in the repro, in both, or something is left out."""


class Remedy(msgspec.Struct, frozen=True):
    """The code of a fix in short, and where the section begins that has all of it."""

    section: str = ""
    """Its id; empty where there is no fix."""
    fix: str = ""
    """The snippet that it is of; empty for a command."""
    repro: str = ""
    """The snippet that `lines` compares it with."""
    lines: tuple[tuple[Sign, str], ...] = ()
    code: str = ""


def remedy(page: Page, snippets: tuple[Snippet, ...]) -> Remedy:
    """The fix in short.

    The first block of the fix's section if it is one for the shell, which most readers can paste as
    it is; else how the first fix differs from the repro that is nearest to it, if fewer lines do
    than the fix has; else the whole fix.
    """
    fix = next((snippet for snippet in snippets if snippet.role is Role.FIX), None)
    if fix is None:
        return Remedy()
    above = [heading for heading in page.headings if heading.line < fix.place.line]
    section, start = (slug(above[-1].text), above[-1].line) if above else ("", 0)
    first = next(fence for fence in page.fences if fence.line > start)
    if first.language in SHELL and not first.runs:
        return Remedy(section, code=first.code.strip())
    repros = [
        snippet
        for snippet in snippets
        if snippet.role is Role.REPRO and snippet.language == fix.language
    ]
    changes = [(repro.id, change(repro, fix)) for repro in repros[:COMPARED]]
    candidates = [
        (repro, lines) for repro, lines in changes if any(sign == "+" for sign, _ in lines)
    ]
    repro, lines = min(candidates, key=lambda candidate: changed(candidate[1]), default=("", ()))
    lines_of_fix = [*settings(fix, fix.env), *fix.code.strip("\n").split("\n")]
    if 0 < changed(lines) < sum(bool(line.strip()) for line in lines_of_fix):
        return Remedy(section, fix.id, repro, lines)
    return Remedy(section, fix.id, code="\n".join(lines_of_fix))


def changed(lines: Iterable[tuple[Sign, str]]) -> int:
    """How many lines are not the same in both."""
    return sum(sign in "+-" for sign, _ in lines)


def change(repro: Snippet, fix: Snippet) -> tuple[tuple[Sign, str], ...]:
    """How a fix differs from a repro, with a line around each change, their indentation removed.

    Imports are left out where something else differs, too, and empty lines; so is what only the
    environment of the repro has: that made it fail, and is not typed.
    """
    names = [name for name, value in fix.env.items() if repro.env.get(name) != value]
    old, new = (
        [*settings(snippet, names), *snippet.code.strip("\n").split("\n")]
        for snippet in (repro, fix)
    )
    if max(len(old), len(new)) > COMPARABLE:
        return ()
    needed = ([line for line in program if not IMPORT.match(line)] for program in (old, new))
    lines = list(differing(*needed)) or list(differing(old, new))
    indent = min(
        (len(text) - len(text.lstrip(" ")) for sign, text in lines if sign != "…"), default=0
    )
    return tuple((sign, text if sign == "…" else text[indent:]) for sign, text in lines)


def settings(snippet: Snippet, names: Iterable[str]) -> list[str]:
    """The environment variables of these names that a snippet is run with, as a shell sets them."""
    return [f"{name}={shlex.quote(snippet.env[name])}" for name in names if name in snippet.env]


def differing(old: list[str], new: list[str]) -> Iterator[tuple[Sign, str]]:
    """The lines of a unified difference that are not empty, without its line numbers."""
    signs: dict[str, Sign] = {"+": "+", "-": "-", " ": " "}
    any_line = gap = False
    for line in islice(difflib.unified_diff(old, new, n=1, lineterm=""), 2, None):
        if line.startswith("@@"):
            gap = any_line
        elif line[1:].strip():
            if gap:
                yield "…", "…"
            yield signs[line[0]], line[1:]
            any_line, gap = True, False
