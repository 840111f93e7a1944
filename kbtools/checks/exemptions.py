"""Rules about exemptions from rules, and what an exemption does."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

import msgspec

from kbtools.articles.model import Article, Problem
from kbtools.articles.parsing import Page
from kbtools.checks import articles, pages, recorded, signatures, together
from kbtools.checks.model import Base, rules_of
from kbtools.config import Config

FATAL = {
    rule.code
    for module in (pages, articles, signatures, together, recorded)
    for rule in rules_of(module)
    if rule.fatal
}


def may_be_exempt(rule: str) -> bool:
    """Whether a text is the code of a rule that an article may break and still be verified."""
    return re.match("KB[123]", rule) is not None and rule not in FATAL


def kb107_exemption(page: Page, article: Article, config: Config) -> Iterator[Problem]:
    """An exemption names a rule that an article can be exempt from.

    No article can be exempt from a fatal rule: `kbtools rules` marks them. One that exempts from
    nothing is itself a problem, KB190.
    """
    for i, exemption in enumerate(article.matter.exempt):
        if not may_be_exempt(exemption.rule):
            line = page.line_of(f"exempt[{i}].rule")
            yield page.problem(line, f"no exemption from {exemption.rule}", "see kbtools rules")


def kb190_exemption_not_needed(page: Page, article: Article, config: Config) -> Iterator[Problem]:
    """An exemption from a rule that finds nothing is out of date; delete it."""
    # whether it is needed is known when all other rules have run: see `apply_exemptions`
    yield from ()


def apply_exemptions(base: Base, problems: Iterable[Problem]) -> Iterator[Problem]:
    """The problems that no article is exempt from, then a problem for each unneeded exemption."""
    granted = {
        (article.path, exemption.rule)
        for article in base.articles
        for exemption in article.matter.exempt
        if may_be_exempt(exemption.rule)
    }
    used: set[tuple[str, str]] = set()
    for problem in problems:
        key = (problem.place.path, problem.rule)
        if key in granted:
            used.add(key)
        else:
            yield problem
    for article in base.articles:
        page = base.page_of(article)
        for i, exemption in enumerate(article.matter.exempt):
            if (article.path, exemption.rule) in granted - used:
                problem = page.problem(
                    page.line_of(f"exempt[{i}].rule"),
                    f"the exemption from {exemption.rule} is no longer needed",
                    "delete it: the rule finds nothing here",
                )
                yield msgspec.structs.replace(problem, rule="KB190")
