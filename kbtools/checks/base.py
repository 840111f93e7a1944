"""A knowledge base is loaded, checked, or reduced to the articles that can be verified."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from kbtools.articles.decoding import decode_article, decode_notice
from kbtools.articles.model import Article, Problem
from kbtools.articles.parsing import read_page
from kbtools.checks.exemptions import apply_exemptions
from kbtools.checks.model import Base
from kbtools.checks.rules import (
    ARTICLE_RULES,
    BASE_RULES,
    NOTICE_RULES,
    PAGE_RULES,
    SHARED_RULES,
    SIGNATURE_RULES,
)
from kbtools.config import Config


def load_base(config: Config, paths: Iterable[Path] | None = None) -> Base:
    """Reads the articles of a knowledge base, or those of these paths.

    Raises:
        ArticleError: the system cannot read a file.
    """
    files = article_files(config) if paths is None else list(paths)
    pages = tuple(read_page(file, config) for file in files)
    problems = [p for page in pages for rule in PAGE_RULES for p in rule.problems(page, config)]
    broken = {problem.place.path for problem in problems}
    originals = [page for page in pages if page.path not in broken and not page.translates]
    needs = config.run.compile_needs
    articles = [decode_article(page, needs) for page in originals if not page.is_notice]
    notices = [decode_notice(page, needs) for page in originals if page.is_notice]
    return Base(
        config,
        pages,
        tuple(sorted(articles, key=lambda article: article.id)),
        tuple(problems),
        notices=tuple(sorted(notices, key=lambda notice: notice.id)),
    )


def article_files(config: Config) -> list[Path]:
    """The files of the articles, then those of the notices."""
    return [*sorted(config.articles.glob("*.md")), *sorted(config.notices.glob("*.md"))]


def check_base(base: Base) -> tuple[Problem, ...]:
    """Every problem of a knowledge base, in the order of its files and lines."""
    return _in_order(apply_exemptions(base, _problems(base)))


def readable_articles(base: Base) -> tuple[tuple[Article, ...], tuple[Problem, ...]]:
    """The articles that can be verified, and the problems that keep the others from it.

    Only the fatal rules run: the rest is for `kbtools check`, and would make each run wait.
    """
    problems = _in_order(_problems(base, fatal_only=True))
    broken = {problem.place.path for problem in problems}
    return tuple(article for article in base.runnable if article.path not in broken), problems


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
    for notice in base.notices:
        if notice.path in base.unread:
            continue
        page = base.page_of(notice.article)
        for rule in (*SHARED_RULES, *SIGNATURE_RULES):
            if rule.fatal or not fatal_only:
                yield from rule.problems(page, notice.article, base.config)
        for rule in NOTICE_RULES:
            if rule.fatal or not fatal_only:
                yield from rule.problems(page, notice, base.config)


def _problems(base: Base, *, fatal_only: bool = False) -> Iterator[Problem]:
    """What the rules find, without a thought for exemptions."""
    yield from page_problems(base, fatal_only=fatal_only)
    for rule in BASE_RULES:
        if rule.fatal or not fatal_only:
            yield from rule.problems(base)


def _in_order(problems: Iterable[Problem]) -> tuple[Problem, ...]:
    return tuple(sorted(problems, key=lambda problem: (problem.place, problem.rule)))
