"""The nouns of a check: the knowledge base that is checked, what was recorded of it, a rule."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cached_property
from types import ModuleType
from typing import Any, TypeVar

import msgspec

from kbtools.articles.model import Article, Problem, Role, Snippet
from kbtools.articles.notices import Notice
from kbtools.articles.parsing import Page
from kbtools.articles.sentences import Sentence, sentences
from kbtools.cache import FileState
from kbtools.config import Config
from kbtools.evidence import store
from kbtools.evidence.bounds import Bound, bounds_of_base
from kbtools.evidence.rows import EvidenceError, Row

NAME = re.compile(r"kb(\d{3})_(\w+)")
"""Of the function of a rule."""


class Failure(msgspec.Struct, frozen=True):
    """A recorded run of a snippet that failed by printing its signature."""

    article: Article
    snippet: Snippet
    toolchain: str
    """Its label, as in `torch 2.8.0, triton 3.4.0`."""
    ended: str
    """How the run ended, in words."""
    output: str


class Recorded(msgspec.Struct, frozen=True):
    """What the rules need of the evidence."""

    failures: tuple[Failure, ...]
    unreadable: tuple[tuple[Article, str], ...]
    """Articles whose evidence cannot be read, and why."""
    packages: frozenset[str] = frozenset()
    """Canonical names of the distributions that any toolchain had."""


class Base(msgspec.Struct, frozen=True, dict=True):
    """A knowledge base as far as it can be read."""

    config: Config
    pages: tuple[Page, ...]
    """Every file of `kb/`, translations too."""
    articles: tuple[Article, ...]
    """The originals that could be decoded, by id."""
    problems: tuple[Problem, ...]
    """What the page rules found in any of the files."""
    unread: frozenset[str] = frozenset()
    """Paths of pages that were not read: no fatal rule found a problem in the state they have."""
    states: dict[str, FileState] = {}
    """Path of a page → the state of the file that it was read from, now or earlier; no page that
    has a problem, nor one that was changed just now."""
    sound_evidence: frozenset[str] = frozenset()
    """Ids of articles whose evidence was found to be readable in the state that it has now."""
    notices: tuple[Notice, ...] = ()
    """Those that could be decoded, by id. No article, and in no count of articles."""

    @property
    def runnable(self) -> tuple[Article, ...]:
        """What may have snippets and evidence: the articles, and the notices that have snippets."""
        notices = (notice.article for notice in self.notices)
        return (*self.articles, *(article for article in notices if article.snippets))

    def sentences_of(self, page: Page) -> tuple[Sentence, ...]:
        """The sentences of a page, which several rules ask for and which are read once."""
        if page.path not in self._sentences:
            self._sentences[page.path] = tuple(sentences(page))
        return self._sentences[page.path]

    @cached_property
    def _sentences(self) -> dict[str, tuple[Sentence, ...]]:
        return {}

    def page_of(self, article: Article) -> Page:
        """The page that an article was decoded from."""
        return self._by_path[article.path]

    @cached_property
    def _by_path(self) -> dict[str, Page]:
        return {page.path: page for page in self.pages}

    @cached_property
    def bounds(self) -> tuple[Bound, ...]:
        """Every bound of the articles whose evidence can be read."""
        rows = self._rows
        return bounds_of_base([article for article in self.articles if article.id in rows], rows)

    @cached_property
    def with_evidence(self) -> frozenset[str]:
        """Ids of the articles of which a run is recorded, be it of code that was edited since."""
        return frozenset(article for article, rows in self._rows.items() if rows)

    @property
    def _rows(self) -> dict[str, tuple[Row, ...]]:
        """Id of an article → its rows, where they can be read; `store` keeps them decoded."""
        rows: dict[str, tuple[Row, ...]] = {}
        for article in self.articles:
            with suppress(EvidenceError):  # KB306 reports it
                rows[article.id] = store.read(self.config.evidence, article.id)
        return rows

    @cached_property
    def recorded(self) -> Recorded:
        """What was recorded of the articles.

        Several rules ask for it, and the files are larger than all else that `check` reads: they
        are read once, and only what the rules need of them stays in memory.

        Of evidence that is known to be readable it has no failures: the rules that need those are
        not run on such a base.
        """
        failures: list[Failure] = []
        unreadable: list[tuple[Article, str]] = []
        packages: set[str] = set()
        for article in self.runnable:
            if article.id in self.sound_evidence:
                continue
            try:
                rows = store.read(self.config.evidence, article.id)
            except EvidenceError as error:
                unreadable.append((article, str(error)))
            else:
                failures += failures_of(article, rows, self.config)
                packages.update(*(row.toolchain.packages for row in rows))
        return Recorded(tuple(failures), tuple(unreadable), frozenset(packages))


def failures_of(article: Article, rows: tuple[Row, ...], config: Config) -> Iterator[Failure]:
    """The recorded failures of an article's snippets, those that show a signature when they fail.

    A snippet with `fails=timeout`, an exit code or a signal shows nothing that could be compared.

    Args:
        article: Whose snippets are looked at.
        rows: All rows of the article's evidence.
        config: Its headline names the toolchain of a failure.
    """
    for snippet in article.snippets:
        if snippet.role in (Role.REPRO, Role.DEADEND) and snippet.keys.fails == "signature":
            for row in store.of_snippet(rows, snippet):
                if row.outcome.status in ("failed", "signal"):
                    outcome = row.outcome
                    label = row.toolchain.label(config.toolchain.headline)
                    yield Failure(article, snippet, label, outcome.ended, outcome.output)


class Rule(msgspec.Struct, frozen=True):
    """A rule: its code as in `KB102`, its name in words, its page, and the function."""

    code: str
    name: str
    page: str
    check: Callable[..., Iterator[Problem]]
    fatal: bool = False
    """Whether no snippet of an article that breaks it is run."""

    def problems(self, *subject: Any) -> Iterator[Problem]:
        """What the rule finds, under its code."""
        for problem in self.check(*subject):
            yield msgspec.structs.replace(problem, rule=self.code)


Check = TypeVar("Check", bound=Callable[..., Iterator[Problem]])

FATAL = (
    "\n\nIt is fatal: no snippet of an article that breaks it is run, and no article may be exempt."
)
"""What the page of a fatal rule says below the docstring of its function."""


def fatal(check: Check) -> Check:
    """Marks the function of a rule that an article must keep before it can be run and judged."""
    check.__dict__["fatal"] = True
    return check


def rules_of(module: ModuleType) -> tuple[Rule, ...]:
    """The rules that a module holds, by code."""
    rules = []
    for name, function in inspect.getmembers(module, inspect.isfunction):
        if match := NAME.fullmatch(name):
            is_fatal = "fatal" in function.__dict__
            page = (inspect.getdoc(function) or "") + FATAL * is_fatal
            words = match[2].replace("_", " ")
            rules.append(Rule(f"KB{match[1]}", words, page, function, is_fatal))
    return tuple(sorted(rules, key=lambda rule: rule.code))
