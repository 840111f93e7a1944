"""Rules that the fences of a page must keep before it can be decoded into an article."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Iterator

from kbtools.articles import data_files
from kbtools.articles.decoding import (
    decode_fence_keys,
    parse_affected,
    parse_environment,
    snippet_id,
)
from kbtools.articles.model import (
    ABSENT,
    LANGUAGES,
    Keys,
    Problem,
    Role,
)
from kbtools.articles.needs import parse_needs
from kbtools.articles.parsing import KEYS, ROLES, Fence, Page
from kbtools.checks.model import fatal
from kbtools.checks.wording import nearest, remedy_for, why_of
from kbtools.config import Config
from kbtools.toolchains.affected import parse_range
from kbtools.toolchains.model import MACHINE
from kbtools.toolchains.needs import check_need

FENCE_SHAPES = {
    "id": "a lower-case word, as in r1",
    "requires": "cpu, compile, nvcc, gpu, or gpus:1 (a GPU to itself) to gpus:9",
    "fails": "signature, timeout, a signal (SIGSEGV), an exit code (exit:3) or an exception",
    "timeout": "seconds, as in 2.5",
    "net": "net=yes, or nothing",
    "files": 'names of files in kb/files/, as in files="orders.csv prices.csv"',
}
"""Key of a fence → how to write its value."""


@fatal
def kb007_unclosed_fence(page: Page, config: Config) -> Iterator[Problem]:
    """Every fence is closed. The text below an open one becomes its code, without a warning.

    That is the rest of the file, or all of it up to the end of the next fence. So a fence that
    shows fences is longer than they are: four backticks around three.
    """
    for fence in page.fences:
        opening = re.compile(rf"\s*{re.escape(fence.markup)}[`~]*\s*[^\s`~][^`]*")
        code = enumerate(fence.code.split("\n"), fence.line + 1)
        next_fence = next((line for line, text in code if opening.fullmatch(text)), None)
        if next_fence is not None:
            message = f"this fence is not closed before the next one, on line {next_fence}"
            step = "close it; or, to show a fence in a fence, make this one longer"
            yield page.problem(fence.line, message, step)
        if not fence.closed:
            step = "close it with a line of the characters that it opens with, as many or more"
            yield page.problem(fence.line, "this fence is never closed", step)


@fatal
def kb008_fence(page: Page, config: Config) -> Iterator[Problem]:
    """A fence that is run has a known language, a known role, and only known keys.

    A fence with no role is prose. One with a misspelt role, or with keys and no role, is an error:
    it would be taken for prose, and its claim would never be tested.
    """
    ids: dict[str, str] = {}  # and the language of each
    counts: Counter[str] = Counter()
    for fence in page.fences:
        if not fence.runs:
            continue
        yield from _words(page, fence)
        keys, invalid_values = decode_fence_keys(fence)
        for invalid in invalid_values:
            message = f"`{invalid.key}={fence.keys[invalid.key]}`: {why_of(invalid)}"
            yield page.problem(fence.line, message, remedy_for(invalid, FENCE_SHAPES))
        if keys.after and keys.after not in ids:
            message = f"`after={keys.after}`: no snippet above has that id"
            yield page.problem(fence.line, message, nearest(keys.after, sorted(ids)))
        elif keys.after and ids[keys.after] != fence.language:
            message = f"`after={keys.after}`: that snippet is in {ids[keys.after]}"
            yield page.problem(fence.line, message, "both are one file, so of one language")
        identifier = snippet_id(fence, keys, counts)
        if identifier in ids:
            message = f"a snippet above has the id `{identifier}`, too"
            yield page.problem(fence.line, message, "give each snippet an id of its own")
        ids.setdefault(identifier, fence.language)
        yield from _claims(page, fence, keys)
        yield from _values(page, fence.line, keys)


@fatal
def kb009_data_file(page: Page, config: Config) -> Iterator[Problem]:
    """`files="…"` of a fence names files that are in `kb/files/`, each of at most 4 MiB.

    The snippet finds a copy of each in its working folder. A link is no such file: it could lead
    to one that nobody meant to show to a snippet.
    """
    for fence in page.fences:
        for name in data_files.words_of(fence.keys.get("files", "")) if fence.runs else ():
            path = data_files.path_of(config, name)
            if path is None:
                names = data_files.available(config)
                if not data_files.NAME.fullmatch(name):
                    step = "write the name of a file in kb/files/: letters, digits, `.`, `-`, `_`"
                else:
                    step = nearest(name, names) if names else f"add the file kb/files/{name}"
                yield page.problem(fence.line, f"`files`: kb/files/ has no file `{name}`", step)
            elif (size := path.stat().st_size) > data_files.LARGEST:
                message = f"`files`: `{name}` has {size / 2**20:.1f} MiB; at most 4 are allowed"
                yield page.problem(fence.line, message, "let the snippet make large data itself")


def _values(page: Page, line: int, keys: Keys) -> Iterator[Problem]:
    """The problems of values that no pattern can describe."""
    if not (keys.affected or keys.holds or keys.needs or keys.env or keys.tool or keys.sm):
        return  # most fences: to parse empty texts was a twentieth of `check`
    for key, claim in (("affected", keys.affected), ("holds", keys.holds)):
        try:
            for alternative in parse_affected(claim) if claim else ():
                for name, text in alternative.items():
                    if text != ABSENT or name in MACHINE:
                        parse_range(text)
        except ValueError as error:
            yield page.problem(line, f"`{key}`: {error}", f'write it as {key}="NAME>=2.7,<2.8"')
    try:
        for name, text in parse_needs(keys.needs).items() if keys.needs else ():
            check_need(name, text)
    except ValueError as error:
        step = 'write it as needs="NAME>=2.7, OTHER, bin:PROGRAM"'
        yield page.problem(line, f"`needs`: {error}", step)
    try:
        parse_environment(keys.env or "")
    except ValueError as error:
        yield page.problem(line, f"`env`: {error}", 'write it as env="K=V L=W"')
    try:
        shlex.split(keys.tool or "")
    except ValueError as error:
        yield page.problem(line, f"`tool`: {error}", 'write it as tool="program --option"')
    try:
        parse_range(keys.sm or "")
    except ValueError as error:
        yield page.problem(line, f"`sm`: {error}", 'write it as sm=">=9.0"')


def _claims(page: Page, fence: Fence, keys: Keys) -> Iterator[Problem]:
    """The problems of a claim that its role does not have."""
    if keys.holds and fence.role != Role.FACT:
        step = "make it a fact, or write `affected`"
        yield page.problem(fence.line, f"`holds` is for facts, and this is a {fence.role}", step)
    if keys.affected and fence.role == Role.FACT:
        step = "write `holds`: where it is true; elsewhere it has to fail"
        yield page.problem(fence.line, "a fact has no `affected`", step)


def _words(page: Page, fence: Fence) -> Iterator[Problem]:
    if fence.language not in LANGUAGES:
        message = f"unknown language `{fence.language}` of a snippet"
        yield page.problem(fence.line, message, nearest(fence.language, LANGUAGES))
    if fence.role is None:
        yield page.problem(
            fence.line, "the fence has keys, but no role", f"roles are: {', '.join(ROLES)}"
        )
    elif fence.role not in ROLES:
        message = f"unknown role `{fence.role}`"
        yield page.problem(fence.line, message, nearest(fence.role, ROLES))
    for key in fence.keys:
        if key not in KEYS:
            yield page.problem(fence.line, f"unknown key `{key}`", nearest(key, KEYS))
        if sum(word.partition("=")[0] == key for word in fence.words) > 1:
            yield page.problem(fence.line, f"`{key}` is given twice", "keep one of them")
