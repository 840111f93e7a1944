"""A knowledge base as the site shows it: read, judged and dated once per build."""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cached_property

import msgspec

from kbtools.articles import links
from kbtools.articles.claims import Claim, Share, claims, share
from kbtools.articles.model import SUFFIX, Article, Snippet
from kbtools.articles.notices import Notice
from kbtools.articles.parsing import Page
from kbtools.checks.model import Base
from kbtools.config import Config
from kbtools.evidence.board import Board, Cell, cell_of, sort_toolchains
from kbtools.evidence.bounds import Bound
from kbtools.evidence.notices import bounds_of_notice, standing_from
from kbtools.evidence.rows import Row
from kbtools.evidence.state import (
    ArticleState,
    Observation,
    is_decided_by_version,
    observations,
    state_from,
)
from kbtools.toolchains.model import Toolchain

LIMIT = 2000
"""Characters of a title, summary or other field that are shown; the rest is cut off."""


MANY = 10
"""From this many articles on, a toolchain used by a single article gets no column on the board."""


class Text(msgspec.Struct, frozen=True):
    """An article's words in one language."""

    language: str
    """Of the words; the original's if there is no translation."""
    title: str
    summary: str
    page: Page


class Change(msgspec.Struct, frozen=True):
    """From `day` on, an article had another state, judged by today's claims."""

    article: str
    before: str
    """`not run` before the first run."""
    after: str
    day: datetime.date
    """In UTC."""


class ArticleView(msgspec.Struct, frozen=True, dict=True):
    """An article as the site shows it: its words, its runs, and the state that follows."""

    article: Article
    original: Text
    translations: dict[str, Text]
    """Language → words."""
    observations: tuple[Observation, ...]
    """In the order of the snippets."""
    state: ArticleState
    changes: tuple[Change, ...]
    """The oldest first."""
    claims: tuple[Claim, ...] = ()
    """The sentences that a reader relies on, each with what stands behind it."""
    bounds: tuple[Bound, ...] = ()
    """Of its version ranges, those of its fences, too."""

    @property
    def id(self) -> str:
        """As in `KB0002`."""
        return self.article.id

    def text(self, language: str) -> Text:
        """Its words in a language, or the original's if it is not translated."""
        return self.translations.get(language, self.original)

    def observations_of(self, snippet: str) -> tuple[Observation, ...]:
        """The observations of a snippet, named as in `r1`."""
        return tuple(
            observation for observation in self.observations if observation.snippet.id == snippet
        )

    @cached_property
    def by_toolchain(self) -> dict[str, tuple[Observation, ...]]:
        """Identity of a toolchain → the observations on it."""
        by_identity: dict[str, list[Observation]] = {}
        for observation in self.observations:
            by_identity.setdefault(observation.row.toolchain.identity, []).append(observation)
        return {identity: tuple(observed) for identity, observed in by_identity.items()}

    @cached_property
    def is_decided_by_version(self) -> bool:
        """Whether its failure occurs on some versions only; else it is a mistake of use."""
        return is_decided_by_version(self.article, self.observations)

    @cached_property
    def share(self) -> Share:
        """How many of its claims have a receipt."""
        return share(self.claims)

    @property
    def newest(self) -> datetime.datetime | None:
        """When its newest run was."""
        return max((observation.row.when for observation in self.observations), default=None)


REPORTED = "reported"
"""What a notice is called, in place of a state, that nobody here has run."""


class NoticeView(msgspec.Struct, frozen=True):
    """A notice as the site shows it."""

    notice: Notice
    view: ArticleView
    """Its words, and its runs if it has snippets; `state.word` says what it is worth."""

    @property
    def id(self) -> str:
        """As in `KBN0001`."""
        return self.notice.id


class SiteModel(msgspec.Struct, frozen=True, dict=True):
    """The knowledge base, in the order of the ids."""

    config: Config
    views: tuple[ArticleView, ...]
    board: Board
    """Articles × toolchains with evidence; its rows are in the order of `views`."""
    notices: tuple[NoticeView, ...] = ()
    """By id. In no count of articles, and not on the board."""

    @cached_property
    def by_id(self) -> dict[str, ArticleView]:
        """Id of an article → its view."""
        return {view.id: view for view in self.views}

    @cached_property
    def linked(self) -> dict[str, ArticleView]:
        """Id of an article or a notice → its view: what a text may lead to."""
        return self.by_id | {notice.id: notice.view for notice in self.notices}

    @cached_property
    def notices_of(self) -> dict[str, tuple[NoticeView, ...]]:
        """Id of an article → the notices that name it as theirs."""
        by_article: dict[str, list[NoticeView]] = {}
        for notice in self.notices:
            if notice.notice.matter.article:
                by_article.setdefault(notice.notice.matter.article, []).append(notice)
        return {identifier: tuple(notices) for identifier, notices in by_article.items()}

    @property
    def languages(self) -> tuple[str, ...]:
        """Of the pages; those in the first language are at the root of the site."""
        return self.config.knowledge_base.languages

    @property
    def toolchains(self) -> tuple[Toolchain, ...]:
        """The toolchains with evidence, in the order of the board's columns."""
        return self.board.toolchains

    @cached_property
    def common(self) -> tuple[Toolchain, ...]:
        """The toolchains that are columns of the board: those that several articles were run on.

        A release that a bisection tried, or an environment made for one failure, says nothing
        about the other articles. Below `MANY` articles every toolchain has a column.
        """
        ran = Counter(identity for view in self.views for identity in view.by_toolchain)
        few = len(self.views) < MANY
        return tuple(
            toolchain for toolchain in self.toolchains if few or ran[toolchain.identity] > 1
        )

    @property
    def headline(self) -> tuple[str, ...]:
        """The distributions by which toolchains are named."""
        return self.config.toolchain.headline

    @cached_property
    def briefs(self) -> tuple[str, ...]:
        """The short names of the toolchains, each once."""
        return tuple(dict.fromkeys(toolchain.brief(self.headline) for toolchain in self.toolchains))

    @cached_property
    def changes(self) -> tuple[Change, ...]:
        """Every change of state, the newest first."""
        changes = [change for view in self.views for change in view.changes]
        return tuple(sorted(changes, key=lambda change: (change.day, change.article), reverse=True))

    @cached_property
    def share(self) -> Share:
        """How many claims of all articles have a receipt."""
        return share(claim for view in self.views for claim in view.claims)

    @cached_property
    def issues(self) -> dict[str, tuple[ArticleView, ...]]:
        """Thread or commit, as in `owner/repo#12` → the articles and notices that mention it."""
        by_reference: dict[str, list[ArticleView]] = {}
        for view in self.linked.values():
            for reference in dict.fromkeys(
                thread.reference for thread in view.article.matter.upstream
            ):
                by_reference.setdefault(reference, []).append(view)
        return {
            reference: tuple(mentioning) for reference, mentioning in sorted(by_reference.items())
        }


def build_model(base: Base) -> SiteModel:
    """The model of a knowledge base whose articles can all be decoded.

    Raises:
        EvidenceError: a row of evidence cannot be read.
    """
    pages = {page.path: page for page in base.pages}
    translated: dict[str, dict[str, Text]] = {}
    for page in base.pages:
        if page.translates:
            words = text_of(page)
            translated.setdefault(str(page.matter.get("id")), {})[page.language] = words

    def view_of(article: Article) -> ArticleView:
        observed = observations(article, base.config)
        return ArticleView(
            article=shortened(article),
            original=text_of(pages[article.path]),
            translations=translated.get(article.id, {}),
            observations=observed,
            state=state_from(article, observed),
            changes=changes_of(article, observed),
            claims=tuple(claims(pages[article.path], base.config)),
            bounds=tuple(bound for bound in base.bounds if bound.article == article.id),
        )

    views = [view_of(article) for article in base.articles]
    notices = [
        NoticeView(
            notice, of_notice(view_of(notice.article), bounds_of_notice(notice, base.config))
        )
        for notice in base.notices
    ]
    return SiteModel(base.config, tuple(views), board_of(views, base.config), tuple(notices))


def of_notice(view: ArticleView, bounds: tuple[Bound, ...]) -> ArticleView:
    """The view of a notice: its word is its standing, unless it is retired or contradicted.

    Args:
        view: As that of an article.
        bounds: Of its window, with the runs that stand behind them.
    """
    word = view.state.word
    if word not in ("retired", "contradicted"):
        word = standing_from(view.state, bounds)
    state = msgspec.structs.replace(view.state, word=word)
    return msgspec.structs.replace(view, state=state, changes=(), bounds=bounds)


def text_of(page: Page) -> Text:
    """The words of an article's page."""
    title, summary = (short(str(page.matter.get(key, ""))) for key in ("title", "summary"))
    return Text(page.language, title, summary, page)


def shortened(article: Article) -> Article:
    """The article with each field cut to `LIMIT` characters."""
    matter = article.matter
    fields = {
        "title": short(matter.title),
        "summary": short(matter.summary),
        "components": tuple(short(component) for component in matter.components),
        "stage": short(matter.stage),
        "severity": short(matter.severity),
    }
    return msgspec.structs.replace(article, matter=msgspec.structs.replace(matter, **fields))


def short(text: str) -> str:
    """A field cut to `LIMIT` characters."""
    return text if len(text) <= LIMIT else f"{text[:LIMIT]}…"


def board_of(views: Sequence[ArticleView], config: Config) -> Board:
    """The same board as `matrix.matrix` makes, each row of evidence asked only once who it is."""
    by_identity = {
        identity: observed[0].row.toolchain
        for view in views
        for identity, observed in view.by_toolchain.items()
    }
    toolchains = sort_toolchains(by_identity.values(), config)
    rows = tuple((view.id, cells_of(view, toolchains)) for view in views)
    return Board(toolchains, rows, config.toolchain.headline)


def cells_of(view: ArticleView, toolchains: Iterable[Toolchain]) -> tuple[Cell, ...]:
    """The cell of an article for each of these toolchains."""
    observed = view.by_toolchain
    return tuple(
        cell_of(view.article, toolchain, observed.get(toolchain.identity, ()))
        for toolchain in toolchains
    )


def changes_of(article: Article, observed: Iterable[Observation]) -> tuple[Change, ...]:
    """The changes of an article's state, the oldest first.

    The state is computed at the end of each day: the order of the runs of a day means nothing.
    """
    standing = msgspec.structs.replace(
        article, matter=msgspec.structs.replace(article.matter, retired=None)
    )
    by_day: dict[datetime.date, list[Observation]] = {}
    for observation in observed:
        by_day.setdefault(day(observation.row), []).append(observation)
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
    """The day of a run, in UTC."""
    return row.when.astimezone(datetime.UTC).date()


# Addresses, relative to the root of the site. They never change: other sites link to them.


def prefix(model: SiteModel, language: str) -> str:
    """How the addresses in a language begin: with nothing, or with `zh/`."""
    return "" if language == model.languages[0] else f"{language}/"


def page_path(model: SiteModel, article: str, language: str) -> str:
    """The address of an article, as in `zh/KB0002/`.

    Args:
        model: The site, which knows its first language.
        article: An id.
        language: Of the page.
    """
    return links.path(article, "" if language == model.languages[0] else language)


def logs_path(model: SiteModel, observation: Observation, language: str) -> str:
    """The address of the log of one run, as in `KB0002/logs/#r1-0a1b2c3d`.

    Args:
        model: The site, which knows its first language.
        observation: The run.
        language: Of the page.
    """
    return f"{page_path(model, observation.snippet.article, language)}logs/#{anchor(observation)}"


def anchor(observation: Observation) -> str:
    """The anchor of one run on the page of its article's logs; the same while the evidence is."""
    return f"{observation.snippet.id}-{observation.row.toolchain.identity[:10]}"


def download_path(snippet: Snippet) -> str:
    """The address of the stand-alone file of a snippet, as in `KB0002/r1.py`."""
    return f"{snippet.article}/{snippet.id}{SUFFIX[snippet.language]}"


def data_file_path(name: str) -> str:
    """The address of a data file that snippets find in their working folder."""
    return f"files/{name}"


def issue_path(model: SiteModel, reference: str, language: str) -> str:
    """The address of the page about an upstream thread `owner/repo#12`: `issues/owner/repo/12/`.

    Args:
        model: The site, which knows its first language.
        reference: As in `owner/repo#12` or `owner/repo@1a2b3c4`.
        language: Of the page.
    """
    return prefix(model, language) + links.thread_path(reference)
