"""A knowledge base loaded without reading the articles in which nothing can have changed.

Only what is well is kept: an article in which a rule found something is read each time, and its
problems are found each time.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path

import msgspec

from kbtools.articles.model import Article, Problem
from kbtools.articles.notices import Notice
from kbtools.articles.parsing import Page
from kbtools.cache import Cache, FileState, file_state, joint_state
from kbtools.checks.base import load_base, page_problems, readable_articles
from kbtools.checks.model import Base
from kbtools.config import Config


class CachedPage(msgspec.Struct, frozen=True, array_like=True):
    """What is kept of a page in which no fatal rule found a problem."""

    identifier: str
    language: str
    article: Article | None
    """Without its body, which is half of it; None for a translation and for a notice."""
    notice: Notice | None = None
    """Without its body, too."""

    def page(self, path: str) -> Page:
        """The page as far as it is kept: its name, and no text."""
        matter: dict[str, object] = {"id": self.identifier}
        return Page(path, self.language, (), matter, {}, (), (), (), 0, "")


def load_cached(config: Config) -> Base:
    """Reads the articles that changed since they were last found to be well, and knows the others.

    Of a page that it knows it has only the path, the language and the id, and of its article all
    but the body. Whoever needs the text of pages takes `load_base`.

    Raises:
        ArticleError: the system cannot read a file.
    """
    cache = Cache(config.cache, "articles", CachedPage, config)
    now = time.time_ns()
    data = _data_state(config)
    files = {
        **_states(config.articles),
        **{f"{config.notices.name}/{n}": state for n, state in _states(config.notices).items()},
    }
    states = {name: _with_data(state, data) for name, state in files.items()}
    cached = {name: cache.get(name, state) for name, state in states.items()}
    others = [config.articles / name for name, page in cached.items() if page is None]
    base = load_base(config, others)
    broken = {problem.place.path for problem in page_problems(base, fatal_only=True)}
    originals = {article.path: article for article in base.articles}
    notices = {notice.path: notice for notice in base.notices}
    data_after = _data_state(config) if others else data
    prefix = f"{config.articles.relative_to(config.root).as_posix()}/"
    for page in base.pages:
        name, article = page.path.removeprefix(prefix), originals.get(page.path)
        state_after = _with_data(file_state(config.articles / name), data_after)
        if page.path not in broken and state_after == states[name]:
            if article:
                article = msgspec.structs.replace(article, body="")
            notice = notices.get(page.path)
            kept_page = CachedPage(
                str(page.matter["id"]),
                page.language,
                article,
                notice and msgspec.structs.replace(notice, body=""),
            )
            cache.put(name, kept_page, states[name], now=now)
    cache.keep_only(states)
    cache.save()
    kept = {prefix + name: page for name, page in cached.items() if page}
    articles = [*base.articles, *(page.article for page in kept.values() if page.article)]
    all_notices = [*base.notices, *(page.notice for page in kept.values() if page.notice)]
    pages = [*base.pages, *(page.page(path) for path, page in kept.items())]
    return Base(
        config,
        pages=tuple(sorted(pages, key=lambda page: page.path)),
        articles=tuple(sorted(articles, key=lambda article: (article.id, article.path))),
        problems=base.problems,
        unread=frozenset(kept),
        states={prefix + name: state for name, state in states.items() if cache.get(name, state)},
        notices=tuple(sorted(all_notices, key=lambda notice: (notice.id, notice.path))),
    )


def readable_cached(config: Config) -> tuple[Base, tuple[Article, ...], tuple[Problem, ...]]:
    """The base, its articles that can be verified, and what keeps the others from it.

    Raises:
        ArticleError: the system cannot read a file.
    """
    base = load_cached(config)
    cache = Cache(config.cache, "evidence", bool, config.root)
    now = time.time_ns()
    states = _states(config.evidence)
    files = {article.id: f"{article.id}.jsonl" for article in base.runnable}
    sound = {i for i, name in files.items() if cache.get(name, states.get(name, ()))}
    base = msgspec.structs.replace(base, sound_evidence=frozenset(sound))
    articles, problems = readable_articles(base)
    if any(problem.place.path in base.unread for problem in problems):
        base = load_base(config)  # a problem shows its line, and a known page has none
        return base, *readable_articles(base)
    unreadable = {article.id for article, _ in base.recorded.unreadable}
    for identifier in files.keys() - sound - unreadable:
        name = files[identifier]
        state = states.get(name, ())
        if file_state(config.evidence / name) == state:
            cache.put(name, True, state, now=now)
    cache.keep_only(files.values())
    cache.save()
    return base, articles, problems


def _data_state(config: Config) -> FileState:
    """The joint state of all data files.

    Which of them a page names is known only when it is read. They are few and seldom change, so
    every page follows from all of them.
    """
    try:
        names = os.listdir(config.data_files)  # noqa: PTH208 - as below
    except OSError:
        return ()
    return joint_state({name: file_state(config.data_files / name) for name in names})


def _with_data(page: FileState, data: FileState) -> FileState:
    """The state of a page and of what it may name; that of the page where there are no files."""
    return joint_state({"page": page, "data": data}) if data else page


def _states(folder: Path) -> Mapping[str, FileState]:
    """The names of the files of a folder, in order, each with its state."""
    try:
        names = sorted(os.listdir(folder))  # noqa: PTH208 - a `Path` of each takes longer
    except OSError:
        return {}
    return {
        name: file_state(f"{folder}/{name}") for name in names if name.endswith((".md", ".jsonl"))
    }
