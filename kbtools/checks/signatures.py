"""Rules for the expressions that recognise a failure in a log."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from typing import Any

import re2
import regress

from kbtools.articles.model import Article, Problem
from kbtools.articles.parsing import Page
from kbtools.articles.signatures import pattern
from kbtools.checks.model import fatal
from kbtools.config import Config

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    # the standard library's own parser: it has no public name, and nothing else gives a tree
    from re import _parser as sre  # type: ignore[attr-defined]


def expressions(page: Page, article: Article) -> Iterator[tuple[str, str, int]]:
    """Every expression of an article: its key, its text, its line."""
    for i, signature in enumerate(article.matter.signatures):
        for key in ("regex", "near", "unless"):
            text = getattr(signature, key)
            if text:
                yield key, text, page.line_of(f"signatures[{i}].{key}")


@fatal
def kb201_not_re2(page: Page, article: Article, config: Config) -> Iterator[Problem]:
    """A signature's expressions are RE2, which takes linear time for any log.

    So they have no look-around and no back-reference.
    """
    for key, text, line in expressions(page, article):
        try:
            pattern(text)
        except re2.error as error:
            why = error.args[0].decode() if isinstance(error.args[0], bytes) else error.args[0]
            yield page.problem(
                line, f"`{key}` is not RE2: {why}", "RE2 has no (?=…), (?<…) and \\1"
            )


def kb202_not_javascript(page: Page, article: Article, config: Config) -> Iterator[Problem]:
    """A signature's expressions are JavaScript's too: the site matches in the reader's browser."""
    for key, text, line in expressions(page, article):
        try:
            regress.Regex(text, "mu")
        except regress.RegressError as error:
            yield page.problem(
                line,
                f"`{key}` is not JavaScript: {error}",
                "JavaScript has no (?i), (?P<…>), \\A, \\z, [[:alpha:]]; escape only what needs it",
            )


def kb203_nested_quantifier(page: Page, article: Article, config: Config) -> Iterator[Problem]:
    """No unbounded repeat within an unbounded repeat, as in `(a+)+`.

    RE2 does not mind, but the browser's engine backtracks, and a hostile log would stop the page.
    """
    for key, text, line in expressions(page, article):
        try:
            tree = sre.parse(_as_python(text))
        except re.error:
            continue  # KB201 or KB202 says so
        if _nested(tree, inside=False):
            yield page.problem(
                line, f"`{key}` repeats a repeat: {text}", "drop the outer or the inner `*` or `+`"
            )


def _as_python(text: str) -> str:
    """The expression with syntax of RE2 and JavaScript replaced by what Python's parser reads."""
    return re.sub(r"\\[pP](\{\w+\}|\w)", r"\\w", re.sub(r"\(\?<\w+>", "(?:", text))


def kb205_near_repeats_without_end(
    page: Page, article: Article, config: Config
) -> Iterator[Problem]:
    """`near` and `unless` repeat nothing without end: they are searched in the whole log.

    RE2 does not mind, but the browser's engine would try each length at each place.
    """
    for key, text, line in expressions(page, article):
        try:
            endless = key != "regex" and _repeats(sre.parse(_as_python(text)))
        except re.error:
            continue  # KB201 or KB202 says so
        if endless:
            yield page.problem(
                line,
                f"`{key}` repeats without end: {text}",
                "say how often: {0,80} in place of `*`",
            )


def kb206_beyond_16_bits(page: Page, article: Article, config: Config) -> Iterator[Problem]:
    """A signature has no character beyond U+FFFF: for the browser's engine it is two.

    Lines of a log may have them.
    """
    for i, signature in enumerate(article.matter.signatures):
        for key in ("literal", "regex", "near", "unless"):
            beyond = sorted(sign for sign in {*(getattr(signature, key) or "")} if sign > "\uffff")
            if beyond:
                yield page.problem(
                    page.line_of(f"signatures[{i}].{key}"),
                    f"`{key}` has a character beyond U+FFFF: {' '.join(beyond)}",
                    "take a part of the message that is plain text",
                )


def _repeats(tree: Any) -> bool:
    """Whether a syntax tree has a repeat without an upper bound."""
    for operator, argument in tree:
        name = str(operator)
        bodies: list[Any] = []
        if name in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
            if argument[1] == sre.MAXREPEAT:
                return True
            bodies = [argument[2]]
        elif name == "SUBPATTERN":
            bodies = [argument[-1]]
        elif name == "BRANCH":
            bodies = argument[1]
        if any(map(_repeats, bodies)):
            return True
    return False


def _nested(tree: Any, inside: bool) -> bool:
    for operator, argument in tree:
        name = str(operator)
        if name in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
            _, most, body = argument
            unbounded = most == sre.MAXREPEAT
            if (unbounded and inside) or _nested(body, inside or unbounded):
                return True
        elif name == "SUBPATTERN":
            if _nested(argument[-1], inside):
                return True
        elif name == "BRANCH" and any(_nested(branch, inside) for branch in argument[1]):
            return True
    return False


def kb204_matches_everything(page: Page, article: Article, config: Config) -> Iterator[Problem]:
    """A signature's `regex` or `near` does not match an empty text: it would match every log."""
    for key, text, line in expressions(page, article):
        try:
            empty = pattern(text).search("") is not None
        except re2.error:
            continue  # KB201 says so
        if empty:
            yield page.problem(line, f"`{key}` matches an empty text: {text}", "anchor it to words")
