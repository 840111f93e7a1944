"""Rules that a page must keep before it can be decoded into an article."""

from __future__ import annotations

import difflib
import typing
from collections.abc import Iterable, Iterator
from pathlib import Path

from kbtools.article import (
    LANGUAGES,
    Exemption,
    FrontMatter,
    Keys,
    Problem,
    Retired,
    Signature,
    Translation,
    Upstream,
)
from kbtools.config import Config
from kbtools.reading import (
    KEYS,
    ROLES,
    Fence,
    Page,
    affected_key,
    environment_key,
    fence_keys,
    front_matter,
)
from kbtools.toolchain import specifiers

NESTED = {
    "signatures": Signature,
    "upstream": Upstream,
    "retired": Retired,
    "exempt": Exemption,
}


def nearest(word: str, known: Iterable[str]) -> str:
    """The next step for a word that is not among the known ones."""
    known = tuple(known)
    close = difflib.get_close_matches(word, known, n=1, cutoff=0.6)
    return f"did you mean `{close[0]}`?" if close else f"known are: {', '.join(known)}"


def kb001_unreadable_front_matter(page: Page, config: Config) -> Iterator[Problem]:
    """An article begins with a block of YAML between two lines `---`.

    It is a mapping, and no key stands in it twice: of two, YAML would silently keep the last.
    """
    for wrong in page.broken:
        yield page.problem(wrong.line, wrong.why, "see the front matter of any other article")


def kb002_malformed_id(page: Page, config: Config) -> Iterator[Problem]:
    """An id is the prefix of the knowledge base and a number of fixed width, as in `KB0002`.

    The file's name begins with it: `KB0002-operand-does-not-dominate.md`.
    """
    found = page.matter.get("id")
    if page.broken or not isinstance(found, str):
        return
    wanted = f"an id looks like {config.article_id(2)}"
    if not config.id_pattern.fullmatch(found):
        yield page.problem(page.line_of("id"), f"`{found}` is not an id", wanted)
        return
    name = Path(page.path).name
    if not name.startswith((f"{found}-", f"{found}.")):
        message = f"the id is {found}, but the file is {name}"
        yield page.problem(page.line_of("id"), message, f"name the file {found}-….md")


def kb003_unknown_key(page: Page, config: Config) -> Iterator[Problem]:
    """The front matter has only keys that mean something; a misspelt one would be ignored."""
    form = Translation if page.translates else FrontMatter
    for key in page.matter:
        known = typing.get_type_hints(form)
        if key not in known:
            hint = nearest(key, known)
            if page.translates and key in typing.get_type_hints(FrontMatter):
                hint = "a translation has id, title and summary; the rest is the original's"
            yield page.problem(page.line_of(key), f"unknown key `{key}`", hint)
        elif key in NESTED and not page.translates:
            value = page.matter[key]
            inside = typing.get_type_hints(NESTED[key])
            items = value if isinstance(value, list) else [value]
            for i, item in enumerate(items):
                at = f"{key}[{i}]" if isinstance(value, list) else key
                for name in item if isinstance(item, dict) else ():
                    if name not in inside:
                        line = page.line_of(f"{at}.{name}")
                        yield page.problem(
                            line, f"unknown key `{name}` in `{key}`", nearest(str(name), inside)
                        )


def kb004_missing_key(page: Page, config: Config) -> Iterator[Problem]:
    """The front matter has an id, a title, a summary, components, stage, severity, signatures.

    A translation has the first three; it inherits the rest.
    """
    if page.broken:
        return
    required: tuple[str, ...] = ("id", "title", "summary")
    if not page.translates:
        required = (*required, "components", "stage", "severity", "signatures")
    for key in required:
        if key not in page.matter:
            yield page.problem(1, f"the front matter has no `{key}`", f"add a line `{key}: …`")


def kb005_wrong_value(page: Page, config: Config) -> Iterator[Problem]:
    """Every value has the type its key demands, and stage, severity and components are known words.

    The words are those of `kbtools.toml`, in the table `[article]`.
    """
    values, wrong = front_matter(page)
    for one in wrong:
        why = one.why.replace("Object missing required field", "it lacks")
        message = f"`{one.key}`: {why[0].lower()}{why[1:]}"
        yield page.problem(one.line, message, f"correct the value of `{one.key}`")
    words = {"stage": config.article.stages, "severity": config.article.severities}
    for key, known in words.items():
        word = values.get(key)
        if word is not None and word not in known:
            message = f"`{word}` is no {key}"
            yield page.problem(page.line_of(key), message, nearest(str(word), known))
    for i, word in enumerate(typing.cast("tuple[str, ...]", values.get("components", ()))):
        known = config.article.components
        if known and word not in known:
            line = page.line_of(f"components[{i}]")
            yield page.problem(line, f"`{word}` is no component", nearest(word, known))


def kb006_section(page: Page, config: Config) -> Iterator[Problem]:
    """An article has the sections of `kbtools.toml`, each once, in that order.

    A reader knows where to look; and a page without a cause or without a fix is not an article.
    """
    form = config.article
    found = [heading.text for heading in page.headings]
    if page.translates:  # headings are translated with the prose; their number is not
        return
    for wanted in form.sections:
        if wanted not in found:
            message = f"the section `## {wanted}` is missing"
            yield page.problem(len(page.lines), message, f"add a heading `## {wanted}`")
    known = (*form.sections, *form.optional_sections)
    for i, heading in enumerate(page.headings):
        if heading.text not in known:
            message = f"unknown section `{heading.text}`"
            yield page.problem(heading.line, message, nearest(heading.text, known))
        elif heading.text in found[:i]:
            yield page.problem(
                heading.line, f"the section `{heading.text}` is there twice", "join the two"
            )
    order = [text for text in found if text in form.sections]
    if order != [text for text in form.sections if text in found]:
        line = page.headings[0].line if page.headings else 1
        yield page.problem(
            line, "the sections are out of order", f"the order is: {', '.join(form.sections)}"
        )


def kb007_unclosed_fence(page: Page, config: Config) -> Iterator[Problem]:
    """Every fence is closed. An open one takes the rest of the file into its code, unseen."""
    for fence in page.fences:
        if not fence.closed:
            message = f"this fence is never closed (```{fence.info})"
            yield page.problem(fence.line, message, "close it with a line of as many backticks")


def kb008_fence(page: Page, config: Config) -> Iterator[Problem]:
    """A fence that is run has a language we run, a role we know, and keys that mean something.

    A fence with no role is prose. One with a misspelt role, or with keys and no role, is an error:
    it would be taken for prose, and its claim would never be tested.
    """
    ids: set[str] = set()
    for fence in page.fences:
        if not fence.runs:
            continue
        yield from _words(page, fence)
        keys, wrong = fence_keys(fence)
        for one in wrong:
            message = f"`{one.key}={fence.keys[one.key]}`: {one.why.lower()}"
            yield page.problem(fence.line, message, f"see the keys of a fence: `{one.key}`")
        if keys.id in ids:
            message = f"a snippet `{keys.id}` is already there"
            yield page.problem(fence.line, message, "give each snippet an id of its own")
        if keys.after and keys.after not in ids:
            message = f"`after={keys.after}`: no snippet above has that id"
            yield page.problem(fence.line, message, nearest(keys.after, sorted(ids)))
        ids |= {keys.id} if keys.id else set()
        yield from _values(page, fence.line, keys)


def _values(page: Page, line: int, keys: Keys) -> Iterator[Problem]:
    """Values that a pattern cannot judge."""
    try:
        for alternative in affected_key(keys.affected) if keys.affected else ():
            for text in alternative.values():
                specifiers(text)
    except ValueError as error:
        yield page.problem(line, f"`affected`: {error}", 'write it as affected="torch>=2.7,<2.8"')
    try:
        environment_key(keys.env or "")
    except ValueError as error:
        yield page.problem(line, f"`env`: {error}", 'write it as env="K=V L=W"')
    try:
        specifiers(keys.sm or "")
    except ValueError as error:
        yield page.problem(line, f"`sm`: {error}", 'write it as sm=">=9.0"')


def _words(page: Page, fence: Fence) -> Iterator[Problem]:
    if fence.language not in LANGUAGES:
        message = f"`{fence.language}` is no language that is run"
        yield page.problem(fence.line, message, nearest(fence.language, LANGUAGES))
    if fence.role is None:
        yield page.problem(
            fence.line, "the fence has keys, but no role", f"roles are: {', '.join(ROLES)}"
        )
    elif fence.role not in ROLES:
        message = f"`{fence.role}` is no role"
        yield page.problem(fence.line, message, nearest(fence.role, ROLES))
    for key in fence.keys:
        if key not in KEYS:
            yield page.problem(fence.line, f"unknown key `{key}`", nearest(key, KEYS))
