"""Page → Article: raw values become typed ones, key by key, so that every problem is reported."""

from __future__ import annotations

import re
import shlex
import types
import typing
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache

import msgspec

from kbtools.articles import data_files
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
from kbtools.articles.needs import joined, parse_needs
from kbtools.articles.notices import Notice, NoticeMatter, NoticeTranslation
from kbtools.articles.parsing import ROLES, Fence, Page

NO_NEEDS: Mapping[str, str] = types.MappingProxyType({})


@cache
def field_types(form: type[msgspec.Struct]) -> dict[str, typing.Any]:
    """Key → type of the fields of a form. Cached: it takes longer than to decode an article."""
    types_by_name = typing.get_type_hints(form, include_extras=True)
    return {f.encode_name: types_by_name[f.name] for f in msgspec.structs.fields(form)}


def form_of(page: Page) -> type[msgspec.Struct]:
    """What the front matter of a page must be: an article's, a notice's, or a translation's."""
    if page.is_notice:
        return NoticeTranslation if page.translates else NoticeMatter
    return Translation if page.translates else FrontMatter


def convert(
    raw: dict[str, object], form: type[msgspec.Struct], *, strict: bool = True
) -> tuple[dict[str, object], list[tuple[str, str]]]:
    """The values in `raw` of a form's fields, and `(path, why)` of each that its type refuses.

    A missing key is not reported here, nor a key that the form does not have.

    Args:
        raw: keys and values as YAML or a fence gives them.
        form: the struct whose fields say which types the values must have.
        strict: whether a text must not stand for a number; fences hold only texts.
    """
    values: dict[str, object] = {}
    errors: list[tuple[str, str]] = []
    for name, kind in field_types(form).items():
        if name in raw:
            try:
                values[name] = msgspec.convert(raw[name], kind, strict=strict)
            except msgspec.ValidationError:
                errors += [(name + path, why) for path, why in _errors(raw[name], kind, strict)]
    return values, errors


def _errors(value: object, kind: typing.Any, strict: bool) -> Iterator[tuple[str, str]]:
    """`(path, why)` of everything in a value that its type refuses.

    msgspec stops at the first error, and an author wants to see all of them at once. So the parts
    of a value that was refused are converted again, one by one; if each is accepted, the error is
    of the value itself. For `upstream` = `[{"report": "no thread"}, 7]` it yields
    `("[0].report", "Expected `str` matching regex …")` and `("[1]", "Expected `object`, got
    `int`")`; for `components` = `[]`, of which there is no part, `("", "Expected `array` of length
    >= 1")`.
    """
    plain = typing.get_args(kind)[0] if typing.get_origin(kind) is typing.Annotated else kind
    if typing.get_origin(plain) is types.UnionType:  # X | None
        plain = typing.get_args(plain)[0]
    errors: list[tuple[str, str]] = []
    if isinstance(value, list) and typing.get_origin(plain) is tuple:
        item_kind = typing.get_args(plain)[0]
        for i, item in enumerate(value):
            errors += [(f"[{i}]{path}", why) for path, why in _errors(item, item_kind, strict)]
    elif isinstance(value, dict) and typing.get_origin(plain) is dict:
        item_kind = typing.get_args(plain)[1]
        for key, item in value.items():
            errors += [(f".{key}{path}", why) for path, why in _errors(item, item_kind, strict)]
    elif isinstance(value, dict) and isinstance(plain, type):
        _, field_errors = convert(value, plain, strict=strict)
        errors = [(f".{path}", why) for path, why in field_errors]
    yield from errors
    if not errors:
        try:
            msgspec.convert(value, kind, strict=strict)
        except msgspec.ValidationError as error:
            why, _, path = str(error).partition(" - at `$")
            yield path.rstrip("`"), why


def decode_front_matter(page: Page) -> tuple[dict[str, object], tuple[InvalidValue, ...]]:
    """The typed values of a page's front matter, and those that their types refuse."""
    values, errors = convert(page.matter, form_of(page))
    return values, tuple(InvalidValue(key, why, page.line_of(key)) for key, why in errors)


def decode_fence_keys(fence: Fence) -> tuple[Keys, tuple[InvalidValue, ...]]:
    """The typed keys of a fence, and those that their types refuse."""
    raw: dict[str, object] = dict(fence.keys)
    values, errors = convert(raw, Keys, strict=False)
    return Keys(**typing.cast("dict[str, typing.Any]", values)), tuple(
        InvalidValue(key, why, fence.line) for key, why in errors
    )


def snippet_id(fence: Fence, keys: Keys, counts: Counter[str]) -> str:
    """The id of a snippet: that of its keys, else its role and number.

    `counts` holds how many snippets of each role came before it on the page; this one is added.
    """
    counts[str(fence.role)] += 1
    return keys.id or f"{fence.role}{counts[str(fence.role)]}"


CONDITION = re.compile(rf"^\s*([A-Za-z][\w.-]*?)(?:\s*((?:[<>=!~]=?|===).*)|\s+({ABSENT})\s*)$")


def parse_affected(text: str) -> Affected:
    """The meaning of a fence's `affected="…"`: `always`, or conditions joined by `;`.

    A condition is a name and a range, or a name and `absent`.

    Raises:
        ValueError: a condition is not a name and a version specifier, or a name is given twice.
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
    """The variables of a fence's `env="K=V …"`.

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


def decode_article(page: Page, compile_needs: Mapping[str, str] = NO_NEEDS) -> Article:
    """The article of a page in which no rule of `kbtools.checks.pages` finds a problem.

    Args:
        page: The original.
        compile_needs: What `requires=compile` needs.

    Raises:
        ValueError, TypeError: the page has a problem.
    """
    values, _ = decode_front_matter(page)
    matter = FrontMatter(**typing.cast("dict[str, typing.Any]", values))
    return Article(
        matter=matter,
        path=page.path,
        language=page.language,
        snippets=decode_snippets(
            page, matter.id, matter.affected or ALWAYS, matter.needs, compile_needs
        ),
        body=page.body,
    )


def decode_notice(page: Page, compile_needs: Mapping[str, str] = NO_NEEDS) -> Notice:
    """The notice of a page in which no rule of `kbtools.checks.pages` finds a problem.

    Args:
        page: The original.
        compile_needs: What `requires=compile` needs.

    Raises:
        ValueError: the page has a problem.
    """
    matter = msgspec.convert(page.matter, NoticeMatter)
    snippets = decode_snippets(page, matter.id, matter.affected, compile_needs=compile_needs)
    return Notice(matter, page.path, page.language, snippets, page.body)


def decode_snippets(
    page: Page,
    article_id: str,
    affected: Affected = ALWAYS,
    needs: Mapping[str, str] = NO_NEEDS,
    compile_needs: Mapping[str, str] = NO_NEEDS,
) -> tuple[Snippet, ...]:
    """The snippets of a page, in order, each joined with those it continues.

    Args:
        page: The original or a translation.
        article_id: That of the original.
        affected: The article's: it counts for every snippet whose fence has none of its own.
        needs: The article's: those of a fence add to it.
        compile_needs: What `requires=compile` needs.
    """
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
            affected=_affected(Role(fence.role), keys, affected),
            env=parse_environment(keys.env) if keys.env else {},
            needs=joined(
                before.needs if before else needs,
                parse_needs(keys.needs) if keys.needs else {},
                compile_needs if keys.requires == "compile" else {},
            ),
            before=(*before.before, before) if before else (),
            own_files={name: page.data_files[name] for name in data_files.words_of(keys.files)}
            if keys.files
            else {},
        )
        snippets[snippet.id] = snippet
    return tuple(snippets.values())


def _affected(role: Role, keys: Keys, of_article: Affected) -> Affected:
    """Where a snippet is expected to fail; a fact, where it is expected to hold."""
    text = keys.holds or "always" if role is Role.FACT else keys.affected
    return parse_affected(text) if text else of_article
