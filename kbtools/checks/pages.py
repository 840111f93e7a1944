"""Rules that a page must keep before it can be decoded into an article."""

from __future__ import annotations

import typing
from collections.abc import Iterator
from pathlib import Path

import msgspec

from kbtools.articles.decoding import (
    decode_front_matter,
    field_types,
    form_of,
)
from kbtools.articles.model import (
    Exemption,
    FrontMatter,
    Problem,
    Refereed,
    Retired,
    Signature,
    Upstream,
)
from kbtools.articles.notices import Dead, Hardware, NoticeMatter, Remedy
from kbtools.articles.parsing import Page
from kbtools.articles.reported import ReportedBound
from kbtools.checks.model import fatal
from kbtools.checks.wording import nearest, remedy_for, why_of
from kbtools.config import Config

NESTED = {
    "signatures": Signature,
    "upstream": Upstream,
    "retired": Retired,
    "exempt": Exemption,
    "refereed": Refereed,
}
NESTED_IN_NOTICE = {
    "signatures": Signature,
    "bounds": ReportedBound,
    "remedies": Remedy,
    "not": Dead,
    "hardware": Hardware,
    "retired": Retired,
}


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
    "date": "a day, as in 2026-01-31",
    "edition": "12 hexadecimal digits between double quotes; kbtools referee writes them",
    "refereed": "what this writes: kbtools referee ID --against 'package 2.13.0 sources'",
    "exempt": "a list of mappings, as in - {rule: KB102, because: there is no fix}",
}
"""Key of the front matter → how to write its value, where the type does not tell."""


@fatal
def kb001_unreadable_front_matter(page: Page, config: Config) -> Iterator[Problem]:
    """An article is UTF-8 and begins with a block of YAML between two lines `---`.

    It is a mapping, and no key is given twice: of two, YAML would silently keep the last.
    """
    for invalid in page.broken:
        yield page.problem(invalid.line, invalid.why, invalid.step)


def _not_an_id(identifier: str, page: Page, config: Config) -> tuple[str, str]:
    """What is wrong with an id, and the next step."""
    step = f"an id looks like {(config.notice_id if page.is_notice else config.article_id)(2)}"
    if config.id_pattern.fullmatch(identifier):
        kind, folder = ("an article", "kb") if page.is_notice else ("a notice", "kb/notices")
        return f"`{identifier}` is the id of {kind}", f"move the file to {folder}/, or: {step}"
    return f"`{identifier}` is not an id", step


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
        yield page.problem(page.line_of("id"), *_not_an_id(identifier, page, config))
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
        message = f"`{invalid.key}`: {why_of(invalid)}"
        yield page.problem(invalid.line, message, remedy_for(invalid, shapes))
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
