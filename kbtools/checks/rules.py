"""Every rule of a knowledge base, as values. A rule is a function named for its code.

`kb0…` look at a page before it is decoded, `kb1…` at an article, `kb2…` at its signatures,
`kb3…` at all of them together. The docstring of the function is the rule's page.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import msgspec

from kbtools.articles.model import Problem
from kbtools.checks import articles, pages, signatures, together

NAME = re.compile(r"kb(\d{3})_(\w+)")


class Rule(msgspec.Struct, frozen=True):
    """A rule: its code as in `KB102`, its name in words, its page, and the function."""

    code: str
    name: str
    page: str
    check: Callable[..., Iterator[Problem]]

    def problems(self, *subject: Any) -> Iterator[Problem]:
        """What the rule finds, under its code."""
        for problem in self.check(*subject):
            yield msgspec.structs.replace(problem, rule=self.code)


def rules_of(module: ModuleType) -> tuple[Rule, ...]:
    """The rules that a module holds, by code."""
    found = []
    for name, function in inspect.getmembers(module, inspect.isfunction):
        if match := NAME.fullmatch(name):
            page = inspect.getdoc(function) or ""
            words = match[2].replace("_", " ")
            found.append(Rule(f"KB{match[1]}", words, page, function))
    return tuple(sorted(found, key=lambda rule: rule.code))


PAGE_RULES = rules_of(pages)
ARTICLE_RULES = rules_of(articles)
SIGNATURE_RULES = rules_of(signatures)
BASE_RULES = rules_of(together)
RULES = (*PAGE_RULES, *ARTICLE_RULES, *SIGNATURE_RULES, *BASE_RULES)
