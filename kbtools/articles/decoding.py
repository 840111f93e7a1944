"""Page → Article: from raw values to typed ones, key by key, so that every problem is found."""

from __future__ import annotations

import re
import shlex
import types
import typing
from collections import Counter
from collections.abc import Iterator
from functools import cache

import msgspec

from kbtools.articles.front_matter import InvalidValue
from kbtools.articles.model import (
    ABSENT,
    ALWAYS,
    LANGUAGES,
    Affected,
    Article,
    FrontMatter,
    Keys,
    Role,
    Snippet,
    Translation,
)
from kbtools.articles.parsing import ROLES, Fence, Page


@cache
def field_types(form: type[msgspec.Struct]) -> dict[str, typing.Any]:
    """Name → type of the fields of a form, asked only once: that takes longer than an article."""
    return typing.get_type_hints(form, include_extras=True)


def convert(
    raw: dict[str, object], form: type[msgspec.Struct], *, strict: bool = True
) -> tuple[dict[str, object], list[tuple[str, str]]]:
    """The values of `form`'s fields found in `raw`, and `(path, why)` of each that will not do.

    A missing key is not reported here, nor one that the form does not have.
    """
    values: dict[str, object] = {}
    wrong: list[tuple[str, str]] = []
    for name, kind in field_types(form).items():
        if name in raw:
            try:
                values[name] = msgspec.convert(raw[name], kind, strict=strict)
            except msgspec.ValidationError:
                wrong += [(name + path, why) for path, why in _errors(raw[name], kind, strict)]
    return values, wrong


def _errors(value: object, kind: typing.Any, strict: bool) -> Iterator[tuple[str, str]]:
    """`(path, why)` of what will not do: of every part, and of the whole if it is not the parts."""
    plain = typing.get_args(kind)[0] if typing.get_origin(kind) is typing.Annotated else kind
    if typing.get_origin(plain) is types.UnionType:  # X | None
        plain = typing.get_args(plain)[0]
    inside: list[tuple[str, str]] = []
    if isinstance(value, list) and typing.get_origin(plain) is tuple:
        for i, one in enumerate(value):
            item = typing.get_args(plain)[0]
            inside += [(f"[{i}]{path}", why) for path, why in _errors(one, item, strict)]
    elif isinstance(value, dict) and typing.get_origin(plain) is dict:
        for key, one in value.items():
            item = typing.get_args(plain)[1]
            inside += [(f".{key}{path}", why) for path, why in _errors(one, item, strict)]
    elif isinstance(value, dict) and isinstance(plain, type):
        _, found = convert(value, plain, strict=strict)
        inside = [(f".{path}", why) for path, why in found]
    yield from inside
    if not inside:
        try:
            msgspec.convert(value, kind, strict=strict)
        except msgspec.ValidationError as error:
            why, _, at = str(error).partition(" - at `$")
            yield at.rstrip("`"), why


def decode_front_matter(page: Page) -> tuple[dict[str, object], tuple[InvalidValue, ...]]:
    """The typed values of a page's front matter, and those that will not do."""
    values, wrong = convert(page.matter, Translation if page.translates else FrontMatter)
    return values, tuple(InvalidValue(key, why, page.line_of(key)) for key, why in wrong)


def decode_fence_keys(fence: Fence) -> tuple[Keys, tuple[InvalidValue, ...]]:
    """The typed keys of a fence, and those that will not do."""
    raw: dict[str, object] = dict(fence.keys)
    values, wrong = convert(raw, Keys, strict=False)
    return Keys(**typing.cast("dict[str, typing.Any]", values)), tuple(
        InvalidValue(key, why, fence.line) for key, why in wrong
    )


def snippet_id(fence: Fence, keys: Keys, counts: Counter[str]) -> str:
    """The id that its keys give it, else its role and number; `counts` is of the fences so far."""
    counts[str(fence.role)] += 1
    return keys.id or f"{fence.role}{counts[str(fence.role)]}"


CONDITION = re.compile(rf"^\s*([A-Za-z][\w.-]*?)(?:\s*((?:[<>=!~]=?|===).*)|\s+({ABSENT})\s*)$")


def parse_affected(text: str) -> Affected:
    """What a fence's `affected="…"` says: `always`, or conditions joined by `;`.

    A condition is a name and a range, or a name and `absent`.

    Raises:
        ValueError: a condition is not a name followed by a version specifier, or is there twice.
    """
    if text.strip() == "always":
        return ALWAYS
    conditions = {}
    for part in text.split(";"):
        match = CONDITION.match(part)
        if not match:
            raise ValueError(f"`{part.strip()}` is not a name and a version specifier")
        if match[1] in conditions:
            raise ValueError(f"`{match[1]}` is given twice: join the two with a comma")
        conditions[match[1]] = (match[2] or match[3]).strip()
    return (conditions,)


def parse_environment(text: str) -> dict[str, str]:
    """What a fence's `env="K=V …"` says.

    Raises:
        ValueError: a word is not `NAME=value`.
    """
    variables = {}
    for word in shlex.split(text):
        name, equals, value = word.partition("=")
        if not equals or not re.fullmatch(r"[A-Za-z_]\w*", name):
            raise ValueError(f"`{word}` is not NAME=value")
        variables[name] = value
    return variables


def decode_article(page: Page) -> Article:
    """The article of a page in which no rule of `kbtools.checks.pages` finds a problem.

    Raises:
        ValueError, TypeError: it has one.
    """
    values, _ = decode_front_matter(page)
    matter = FrontMatter(**typing.cast("dict[str, typing.Any]", values))
    return Article(
        matter=matter,
        path=page.path,
        language=page.language,
        snippets=decode_snippets(page, matter.id, matter.affected or ALWAYS),
        body=page.body,
    )


def decode_snippets(
    page: Page, article_id: str, affected: Affected = ALWAYS
) -> tuple[Snippet, ...]:
    """The snippets of a page, in order, each joined with those it continues."""
    snippets: dict[str, Snippet] = {}
    counts: Counter[str] = Counter()
    for fence in page.fences:
        if not fence.runs or fence.role not in ROLES or fence.language not in LANGUAGES:
            continue
        keys, _ = decode_fence_keys(fence)
        before = snippets.get(keys.after) if keys.after else None
        snippet = Snippet(
            article=article_id,
            id=snippet_id(fence, keys, counts),
            role=Role(fence.role),
            language=fence.language,
            code=fence.code,
            place=page.place(fence.line + 1),
            keys=keys,
            affected=parse_affected(keys.affected) if keys.affected else affected,
            env=parse_environment(keys.env) if keys.env else {},
            before=(*before.before, before) if before else (),
        )
        snippets[snippet.id] = snippet
    return tuple(snippets.values())
