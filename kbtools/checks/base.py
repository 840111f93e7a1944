"""A knowledge base is loaded, checked, or reduced to the articles that can be verified."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from kbtools.articles.decoding import decode_article
from kbtools.articles.model import Article, Problem
from kbtools.articles.parsing import read_page
from kbtools.checks.exemptions import apply_exemptions
from kbtools.checks.model import Base
from kbtools.checks.rules import ARTICLE_RULES, BASE_RULES, PAGE_RULES, SIGNATURE_RULES
from kbtools.config import Config


def load_base(config: Config, paths: Iterable[Path] | None = None) -> Base:
    """Reads the articles of a knowledge base, or those of these paths.

    Raises:
        ArticleError: the system cannot read a file.
    """
    files = sorted(config.articles.glob("*.md")) if paths is None else list(paths)
    pages = tuple(read_page(file, config) for file in files)
    problems = [p for page in pages for rule in PAGE_RULES for p in rule.problems(page, config)]
    broken = {problem.place.path for problem in problems}
    originals = [page for page in pages if page.path not in broken and not page.translates]
    articles = sorted(map(decode_article, originals), key=lambda article: article.id)
    return Base(config, pages, tuple(articles), tuple(problems))


def check_base(base: Base) -> tuple[Problem, ...]:
    """Every problem of a knowledge base, in the order of its files and lines."""
    return _in_order(apply_exemptions(base, _problems(base)))


def readable_articles(base: Base) -> tuple[tuple[Article, ...], tuple[Problem, ...]]:
    """The articles that can be verified, and the problems that keep the others from it.

    Only the fatal rules run: the rest is for `kbtools check`, and would make each run wait.
    """
    problems = _in_order(_problems(base, fatal_only=True))
    broken = {problem.place.path for problem in problems}
    return tuple(article for article in base.articles if article.path not in broken), problems


def page_problems(base: Base, *, fatal_only: bool = False) -> Iterator[Problem]:
    """What the rules find that look at a single page or article.

    Pages in which nothing was found before are not looked at again.
    """
    yield from base.problems
    for article in base.articles:
        if article.path in base.unread:
            continue
        page = base.page_of(article)
        for rule in (*ARTICLE_RULES, *SIGNATURE_RULES):
            if rule.fatal or not fatal_only:
                yield from rule.problems(page, article, base.config)


def _problems(base: Base, *, fatal_only: bool = False) -> Iterator[Problem]:
    """What the rules find, without a thought for exemptions."""
    yield from page_problems(base, fatal_only=fatal_only)
    for rule in BASE_RULES:
        if rule.fatal or not fatal_only:
            yield from rule.problems(base)


def _in_order(problems: Iterable[Problem]) -> tuple[Problem, ...]:
    return tuple(sorted(problems, key=lambda problem: (problem.place, problem.rule)))
