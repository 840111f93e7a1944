"""A knowledge base as the site shows it: read, judged and dated once per build."""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cached_property

import msgspec

from kbtools.articles import links
from kbtools.articles.model import SUFFIX, Article, Snippet
from kbtools.articles.parsing import Page
from kbtools.checks.model import Base
from kbtools.config import Config
from kbtools.evidence.board import Board, Cell, cell_of, sort_toolchains
from kbtools.evidence.state import ArticleState, Observation, observations, state_from
from kbtools.evidence.store import Row
from kbtools.toolchains.model import Toolchain

LIMIT = 2000
"""Characters of a field that are shown anywhere: more is no title, summary or word."""


MANY = 10
"""Articles from which on a toolchain that one of them alone was run on is that article's own."""


class Text(msgspec.Struct, frozen=True):
    """An article's words in one language."""

    language: str
    """Of the words: the original's where there is no translation."""
    title: str
    summary: str
    page: Page


class Change(msgspec.Struct, frozen=True):
    """From `day` on an article's state was another one, going by today's claims."""

    article: str
    before: str
    """`not run` before anything was seen."""
    after: str
    day: datetime.date
    """In UTC."""


class ArticleView(msgspec.Struct, frozen=True, dict=True):
    """An article as the site shows it: its words, its runs, and the state that follows."""

    article: Article
    original: Text
    translations: dict[str, Text]
    """Language → words."""
    seen: tuple[Observation, ...]
    """In the order of the snippets."""
    state: ArticleState
    changes: tuple[Change, ...]
    """The oldest first."""

    @property
    def id(self) -> str:
        """As in `KB0002`."""
        return self.article.id

    def text(self, language: str) -> Text:
        """Its words in a language, or the original's where it is not translated."""
        return self.translations.get(language, self.original)

    def of(self, snippet: str) -> tuple[Observation, ...]:
        """What was seen of a snippet, named as in `r1`."""
        return tuple(one for one in self.seen if one.snippet.id == snippet)

    @cached_property
    def by_toolchain(self) -> dict[str, tuple[Observation, ...]]:
        """Identity of a toolchain → what was seen there."""
        found: dict[str, list[Observation]] = {}
        for one in self.seen:
            found.setdefault(one.row.toolchain.identity, []).append(one)
        return {identity: tuple(here) for identity, here in found.items()}

    @property
    def newest(self) -> datetime.datetime | None:
        """When the newest of its evidence was seen."""
        return max((one.row.when for one in self.seen), default=None)


class SiteModel(msgspec.Struct, frozen=True, dict=True):
    """The knowledge base, in the order of the ids."""

    config: Config
    views: tuple[ArticleView, ...]
    board: Board
    """Articles × toolchains on which anything was seen; its rows stand in the order of `views`."""

    @cached_property
    def by_id(self) -> dict[str, ArticleView]:
        """Id of an article → its view."""
        return {view.id: view for view in self.views}

    @property
    def languages(self) -> tuple[str, ...]:
        """Of the pages; the first one's are at the top of the site."""
        return self.config.knowledge_base.languages

    @property
    def toolchains(self) -> tuple[Toolchain, ...]:
        """Those on which anything was seen, as the columns of the board stand."""
        return self.board.toolchains

    @cached_property
    def common(self) -> tuple[Toolchain, ...]:
        """The toolchains that are no single article's own, which are the columns of the board.

        A release that a bisection went through, or an environment made for one failure, says
        nothing of the other articles. Among few articles every toolchain counts.
        """
        ran = Counter(identity for view in self.views for identity in view.by_toolchain)
        few = len(self.views) < MANY
        return tuple(one for one in self.toolchains if few or ran[one.identity] > 1)

    @property
    def headline(self) -> tuple[str, ...]:
        """The distributions by which toolchains are named."""
        return self.config.toolchain.headline

    @cached_property
    def briefs(self) -> tuple[str, ...]:
        """What matters most in them, each once."""
        return tuple(dict.fromkeys(toolchain.brief(self.headline) for toolchain in self.toolchains))

    @cached_property
    def changes(self) -> tuple[Change, ...]:
        """Every change of state, the newest first."""
        found = [change for view in self.views for change in view.changes]
        return tuple(sorted(found, key=lambda one: (one.day, one.article), reverse=True))

    @cached_property
    def issues(self) -> dict[str, tuple[ArticleView, ...]]:
        """Upstream thread or commit, as in `owner/repo#12` → the articles that speak of it."""
        found: dict[str, list[ArticleView]] = {}
        for view in self.views:
            for reference in dict.fromkeys(one.reference for one in view.article.matter.upstream):
                found.setdefault(reference, []).append(view)
        return {reference: tuple(of) for reference, of in sorted(found.items())}


def build_model(base: Base) -> SiteModel:
    """The model of a knowledge base whose articles can all be decoded.

    Raises:
        KbtoolsError: a row of evidence cannot be read.
    """
    pages = {page.path: page for page in base.pages}
    translated: dict[str, dict[str, Text]] = {}
    for page in base.pages:
        if page.translates:
            words = text_of(page)
            translated.setdefault(str(page.matter.get("id")), {})[page.language] = words
    views = []
    for article in base.articles:
        found = observations(article, base.config)
        views.append(
            ArticleView(
                article=shortened(article),
                original=text_of(pages[article.path]),
                translations=translated.get(article.id, {}),
                seen=found,
                state=state_from(article, found),
                changes=changes_of(article, found),
            )
        )
    return SiteModel(base.config, tuple(views), board_of(views, base.config))


def text_of(page: Page) -> Text:
    """The words of an article's page."""
    title, summary = (short(str(page.matter.get(key, ""))) for key in ("title", "summary"))
    return Text(page.language, title, summary, page)


def shortened(article: Article) -> Article:
    """The article with fields that can be shown, however long its own are."""
    matter = article.matter
    fields = {
        "title": short(matter.title),
        "summary": short(matter.summary),
        "components": tuple(short(one) for one in matter.components),
        "stage": short(matter.stage),
        "severity": short(matter.severity),
    }
    return msgspec.structs.replace(article, matter=msgspec.structs.replace(matter, **fields))


def short(text: str) -> str:
    """A field as far as it is shown."""
    return text if len(text) <= LIMIT else f"{text[:LIMIT]}…"


def board_of(views: Sequence[ArticleView], config: Config) -> Board:
    """The same board as `matrix.matrix` makes, each row of evidence asked only once who it is."""
    known = {
        identity: here[0].row.toolchain
        for view in views
        for identity, here in view.by_toolchain.items()
    }
    toolchains = sort_toolchains(known.values(), config)
    rows = tuple((view.id, cells_of(view, toolchains)) for view in views)
    return Board(toolchains, rows, config.toolchain.headline)


def cells_of(view: ArticleView, toolchains: Iterable[Toolchain]) -> tuple[Cell, ...]:
    """What is known of an article on each of these toolchains."""
    here = view.by_toolchain
    return tuple(cell_of(view.article, one, here.get(one.identity, ())) for one in toolchains)


def changes_of(article: Article, found: Iterable[Observation]) -> tuple[Change, ...]:
    """The days on which what had been seen by then made another state, the oldest first.

    A day is taken as a whole: in which order its snippets were run says nothing.
    """
    standing = msgspec.structs.replace(
        article, matter=msgspec.structs.replace(article.matter, retired=None)
    )
    by_day: dict[datetime.date, list[Observation]] = {}
    for one in found:
        by_day.setdefault(day(one.row), []).append(one)
    word, so_far, changes = "not run", list[Observation](), list[Change]()
    for when in sorted(by_day):
        so_far += by_day[when]
        after = state_from(standing, so_far).word
        if after != word:
            changes.append(Change(article.id, word, after, when))
            word = after
    retired = article.matter.retired
    if retired:
        changes = [change for change in changes if change.day <= retired.since]
        before = changes[-1].after if changes else "not run"
        changes.append(Change(article.id, before, "retired", retired.since))
    return tuple(changes)


def day(row: Row) -> datetime.date:
    """When a row was seen, in UTC."""
    return row.when.astimezone(datetime.UTC).date()


# Addresses, relative to the root of the site: they are for ever.


def prefix(model: SiteModel, language: str) -> str:
    """Of every page in a language: nothing, or `zh/`."""
    return "" if language == model.languages[0] else f"{language}/"


def page_path(model: SiteModel, article: str, language: str) -> str:
    """Of an article, as in `zh/KB0002/`."""
    return links.path(article, "" if language == model.languages[0] else language)


def logs_path(model: SiteModel, one: Observation, language: str) -> str:
    """Of the log of one run, as in `KB0002/logs/#r1-0a1b2c3d`."""
    return f"{page_path(model, one.snippet.article, language)}logs/#{anchor(one)}"


def anchor(one: Observation) -> str:
    """Of one run on the page of its article's logs; the same as long as its evidence stands."""
    return f"{one.snippet.id}-{one.row.toolchain.identity[:10]}"


def download_path(snippet: Snippet) -> str:
    """Of the stand-alone file of a snippet, as in `KB0002/r1.py`."""
    return f"{snippet.article}/{snippet.id}{SUFFIX[snippet.language]}"


def issue_path(model: SiteModel, reference: str, language: str) -> str:
    """Of the page about an upstream thread `owner/repo#12`: `issues/owner/repo/12/`."""
    return prefix(model, language) + links.thread_path(reference)
