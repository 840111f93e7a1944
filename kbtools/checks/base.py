"""A knowledge base as far as it can be read, and every problem that the rules find in it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property
from pathlib import Path

import msgspec

from kbtools.articles.decoding import decode_article
from kbtools.articles.model import Article, Problem
from kbtools.articles.parsing import Page, read_page
from kbtools.checks.articles import FATAL, may_be_exempt
from kbtools.checks.rules import ARTICLE_RULES, BASE_RULES, PAGE_RULES, SIGNATURE_RULES
from kbtools.config import Config


class Base(msgspec.Struct, frozen=True, dict=True):
    """A knowledge base as far as it can be read."""

    config: Config
    pages: tuple[Page, ...]
    """Every file that could be taken apart, translations too."""
    articles: tuple[Article, ...]
    """The originals that could be decoded, by id."""
    problems: tuple[Problem, ...]
    """What the page rules found in any of the files."""

    def page_of(self, one: Article) -> Page:
        """The page that an article was decoded from."""
        return self._by_path[one.path]

    @cached_property
    def _by_path(self) -> dict[str, Page]:
        return {page.path: page for page in self.pages}


def load_base(config: Config, paths: Iterable[Path] | None = None) -> Base:
    """Reads the articles of a knowledge base, or those of these paths.

    Raises:
        KbtoolsError: a file is not there or not text.
    """
    files = sorted(config.articles.glob("*.md")) if paths is None else list(paths)
    taken = tuple(read_page(file, config) for file in files)
    problems = [p for page in taken for rule in PAGE_RULES for p in rule.problems(page, config)]
    broken = {problem.place.path for problem in problems}
    whole = [page for page in taken if page.path not in broken and not page.translates]
    decoded = sorted((decode_article(page) for page in whole), key=lambda one: one.id)
    return Base(config, taken, tuple(decoded), tuple(problems))


def check_base(base: Base) -> tuple[Problem, ...]:
    """Every problem of a knowledge base, in the order of its files and lines."""
    found = list(base.problems)
    for one in base.articles:
        page = base.page_of(one)
        for rule in (*ARTICLE_RULES, *SIGNATURE_RULES):
            found += rule.problems(page, one, base.config)
    for rule in BASE_RULES:
        found += rule.problems(base)
    return tuple(sorted(exempted(base, found), key=lambda problem: (problem.place, problem.rule)))


def exempted(base: Base, problems: Iterable[Problem]) -> Iterator[Problem]:
    """The problems that no article is exempt from, and the exemptions that exempt from nothing."""
    spent: set[tuple[str, str]] = set()
    granted = {
        (one.path, exemption.rule)
        for one in base.articles
        for exemption in one.matter.exempt
        if may_be_exempt(exemption.rule)
    }
    for problem in problems:
        key = (problem.place.path, problem.rule)
        if key in granted:
            spent.add(key)
        else:
            yield problem
    for one in base.articles:
        page = base.page_of(one)
        for i, exemption in enumerate(one.matter.exempt):
            key = (one.path, exemption.rule)
            if key in granted and key not in spent:
                yield msgspec.structs.replace(
                    page.problem(
                        page.line_of(f"exempt[{i}].rule"),
                        f"the exemption from {exemption.rule} is no longer needed",
                        "delete it: the rule finds nothing here",
                    ),
                    rule="KB190",
                )


def readable_articles(base: Base) -> tuple[tuple[Article, ...], tuple[Problem, ...]]:
    """The articles that can be verified, and what keeps the others from it."""
    problems = tuple(problem for problem in check_base(base) if problem.rule.startswith(FATAL))
    broken = {problem.place.path for problem in problems}
    return tuple(one for one in base.articles if one.path not in broken), problems
