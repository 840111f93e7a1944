"""Rules that a page must keep before it can be decoded into an article."""

from __future__ import annotations

import difflib
import re
import shlex
import typing
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from kbtools.articles import data_files
from kbtools.articles.decoding import (
    decode_fence_keys,
    decode_front_matter,
    field_types,
    form_of,
    parse_affected,
    parse_environment,
    snippet_id,
)
from kbtools.articles.front_matter import InvalidValue
from kbtools.articles.model import (
    ABSENT,
    LANGUAGES,
    Exemption,
    FrontMatter,
    Keys,
    Problem,
    Retired,
    Role,
    Signature,
    Upstream,
)
from kbtools.articles.needs import parse_needs
from kbtools.articles.notices import Dead, Hardware, NoticeMatter, Remedy
from kbtools.articles.parsing import KEYS, ROLES, Fence, Page
from kbtools.articles.reported import ReportedBound
from kbtools.checks.model import fatal
from kbtools.config import Config
from kbtools.toolchains.affected import parse_range
from kbtools.toolchains.model import MACHINE
from kbtools.toolchains.needs import check_need

NESTED = {
    "signatures": Signature,
    "upstream": Upstream,
    "retired": Retired,
    "exempt": Exemption,
}
NESTED_IN_NOTICE = {
    "signatures": Signature,
    "bounds": ReportedBound,
    "remedies": Remedy,
    "not": Dead,
    "hardware": Hardware,
    "retired": Retired,
}


def nearest(word: str, words: Iterable[str]) -> str:
    """The next step for a word that is not among these words."""
    words = tuple(words)
    close = difflib.get_close_matches(word, words, n=1, cutoff=0.6)
    return f"did you mean `{close[0]}`?" if close else f"write one of: {', '.join(words)}"


REFERENCE = "owner/repo#123 or owner/repo@1a2b3c4"
SHAPES = {
    **dict.fromkeys(("report", "fix", "cause", "related"), REFERENCE),
    "since": "a day, as in 2026-01-31",
    "basis": "stated or inferred",
    "follows": "12 hexadecimal digits between double quotes; without them, check says which",
    "components": "a list, as in [driver, compiler]",
    "signatures": 'a list of mappings, as in - literal: "it fails"',
    "needs": 'a mapping, as in {package: ">=2.4", other: "*"}',
    "affected": 'a list of mappings, as in - {package: ">=2.7,<2.8"}',
    "upstream": "a list of mappings, as in - {report: owner/repo#123}",
    "receipt": "owner/repo#123, owner/repo@tag path/of/file.py:12, or https://…; several: a, b",
    "threads": "a list of owner/repo#123 or owner/repo@1a2b3c4",
    "looked-up": "a day, as in 2026-01-31",
    "bounds": 'a list of mappings, as in - {bound: "package<2.8", receipt: owner/repo#123}',
    "remedies": 'a list of mappings, as in - {do: "Upgrade to 2.8.", receipt: owner/repo#123}',
    "not": "a list of mappings, as in - {do: …, why: …, receipt: owner/repo#123}",
    "hardware": 'a mapping, as in {sm: ">=9.0,<10.0", receipt: owner/repo#123}',
    "confusable": "a list of ids between square brackets",
    "retired": "a mapping, as in {since: 2026-01-31, reason: it cannot happen any more}",
    "exempt": "a list of mappings, as in - {rule: KB102, because: there is no fix}",
}
"""Key of the front matter → how to write its value, where the type does not tell."""

YAML_WORDS = {
    "Object missing required field": "it lacks",
    "`array`": "a list",
    "`object`": "a mapping",
    " | null": "",
}
"""Words of the decoder, which are those of JSON → words that authors of YAML use."""

FENCE_SHAPES = {
    "id": "a lower-case word, as in r1",
    "requires": "cpu, compile, nvcc, gpu, or gpus:1 (a GPU to itself) to gpus:9",
    "fails": "signature, timeout, a signal (SIGSEGV), an exit code (exit:3) or an exception",
    "timeout": "seconds, as in 2.5",
    "net": "net=yes, or nothing",
    "files": 'names of files in kb/files/, as in files="orders.csv prices.csv"',
}
"""Key of a fence → how to write its value."""


def _why(invalid: InvalidValue) -> str:
    if "matching regex" in invalid.why:
        return "not of the right form"
    why = invalid.why
    for word, replacement in YAML_WORDS.items():
        why = why.replace(word, replacement)
    return why[0].lower() + why[1:]


def _remedy(invalid: InvalidValue, shapes: dict[str, str]) -> str:
    name = invalid.key.rpartition(".")[2]
    if name in shapes:
        return f"write {shapes[name]}"
    key, index, _ = name.partition("[")
    if index and key in shapes and "array" not in invalid.why:
        return f"write {shapes[key]}"
    if invalid.why.startswith("Expected `str") and invalid.why.endswith(("`int`", "`float`")):
        return "put it between double quotes"
    return f"correct the value of `{invalid.key}`"


@fatal
def kb001_unreadable_front_matter(page: Page, config: Config) -> Iterator[Problem]:
    """An article is UTF-8 and begins with a block of YAML between two lines `---`.

    It is a mapping, and no key is given twice: of two, YAML would silently keep the last.
    """
    for invalid in page.broken:
        yield page.problem(invalid.line, invalid.why, invalid.step)


@fatal
def kb002_malformed_id(page: Page, config: Config) -> Iterator[Problem]:
    """An id is the prefix of the knowledge base and a number of fixed width, as in `KB0002`.

    The file's name begins with it, `KB0002-operand-does-not-dominate.md`, and has one more dot for
    a translation only, before a language of `kbtools.toml`: `….zh.md`.
    """
    languages = config.knowledge_base.languages
    if page.translates and page.language not in languages:
        message = f"unknown language `{page.language}` between the dots of the file's name"
        yield page.problem(1, message, nearest(page.language, languages))
    identifier = page.matter.get("id")
    if page.broken or not isinstance(identifier, str):
        return
    well_formed = config.id_pattern.fullmatch(identifier) is not None
    if not well_formed or config.is_notice_id(identifier) != page.is_notice:
        step = f"an id looks like {(config.notice_id if page.is_notice else config.article_id)(2)}"
        yield page.problem(page.line_of("id"), f"`{identifier}` is not an id", step)
        return
    name = Path(page.path).name
    if not name.startswith((f"{identifier}-", f"{identifier}.")):
        message = f"the id is {identifier}, but the file is {name}"
        yield page.problem(page.line_of("id"), message, f"name the file {identifier}-….md")


@fatal
def kb003_unknown_key(page: Page, config: Config) -> Iterator[Problem]:
    """The front matter has only known keys; a misspelt one would be ignored."""
    form = form_of(page)
    nested = NESTED_IN_NOTICE if page.is_notice else NESTED
    original = field_types(NoticeMatter if page.is_notice else FrontMatter)
    for key in page.matter:
        keys = field_types(form)
        if key not in keys:
            hint = nearest(key, keys)
            if page.translates and key in original:
                hint = f"a translation has {', '.join(keys)}; the rest is the original's"
            yield page.problem(page.line_of(key), f"unknown key `{key}`", hint)
        elif key in nested and not page.translates:
            value = page.matter[key]
            inside = field_types(nested[key])
            items = value if isinstance(value, list) else [value]
            for i, item in enumerate(items):
                at = f"{key}[{i}]" if isinstance(value, list) else key
                for name in item if isinstance(item, dict) else ():
                    if name not in inside:
                        line = page.line_of(f"{at}.{name}")
                        yield page.problem(
                            line, f"unknown key `{name}` in `{key}`", nearest(str(name), inside)
                        )


@fatal
def kb004_missing_key(page: Page, config: Config) -> Iterator[Problem]:
    """The front matter has an id, a title, a summary, components, stage, severity, signatures.

    A translation has the first three; it inherits the rest. A notice may lack signatures and has
    affected, bounds, remedies, threads, basis and looked-up; its translation has remedies, too.
    """
    if page.broken:
        return
    for field in msgspec.structs.fields(form_of(page)):
        if field.required and (key := field.encode_name) not in page.matter:
            yield page.problem(1, f"the front matter has no `{key}`", f"add a line `{key}: …`")


@fatal
def kb005_wrong_value(page: Page, config: Config) -> Iterator[Problem]:
    """Every value has the type of its key, and stage, severity and components are known words.

    The words are those of `kbtools.toml`, in the table `[article]`.
    """
    values, invalid_values = decode_front_matter(page)
    shapes = SHAPES | {"basis": "reported"} if page.is_notice else SHAPES
    for invalid in invalid_values:
        message = f"`{invalid.key}`: {_why(invalid)}"
        yield page.problem(invalid.line, message, _remedy(invalid, shapes))
    words = {"stage": config.article.stages, "severity": config.article.severities}
    for key, allowed in words.items():
        word = values.get(key)
        if word is not None and word not in allowed:
            message = f"unknown {key} `{word}`"
            yield page.problem(page.line_of(key), message, nearest(str(word), allowed))
    for i, word in enumerate(typing.cast("tuple[str, ...]", values.get("components", ()))):
        allowed = config.article.components
        if allowed and word not in allowed:
            line = page.line_of(f"components[{i}]")
            yield page.problem(line, f"unknown component `{word}`", nearest(word, allowed))


@fatal
def kb006_section(page: Page, config: Config) -> Iterator[Problem]:
    """An article has the sections of `kbtools.toml`, each once, in that order.

    A reader knows where to look; and a page without a cause or without a fix is not an article.
    """
    form = config.article
    if page.is_notice:  # a paragraph or two
        return
    if page.translates:  # headings are translated with the prose; their number is not
        return
    headings = [heading.text for heading in page.headings]
    for section in form.sections:
        if section not in headings:
            message = f"the section `## {section}` is missing"
            yield page.problem(len(page.lines), message, f"add a heading `## {section}`")
    allowed = (*form.sections, *form.optional_sections)
    for i, heading in enumerate(page.headings):
        if heading.text not in allowed:
            message = f"unknown section `{heading.text}`"
            yield page.problem(heading.line, message, nearest(heading.text, allowed))
        elif heading.text in headings[:i]:
            message = f"the section `{heading.text}` is given twice"
            yield page.problem(heading.line, message, "join the two")
    order = [text for text in dict.fromkeys(headings) if text in form.sections]
    if order != [text for text in form.sections if text in headings]:
        line = page.headings[0].line if page.headings else 1
        yield page.problem(
            line, "the sections are out of order", f"the order is: {', '.join(form.sections)}"
        )


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
            message = f"`{invalid.key}={fence.keys[invalid.key]}`: {_why(invalid)}"
            yield page.problem(fence.line, message, _remedy(invalid, FENCE_SHAPES))
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
