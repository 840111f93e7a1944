"""Verdicts that follow from files which have not changed, so that none of them is read.

The verdict on a remembered outcome follows from the article, from what this machine remembers of
it, and from the toolchain. While all three are the same, the verdict is.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import msgspec

from kbtools.articles.model import Article
from kbtools.cache import Cache, FileState, file_state
from kbtools.config import Config
from kbtools.evidence import store
from kbtools.evidence.verdicts import Verdict, verdict_without_run
from kbtools.running.executor import REPRO
from kbtools.toolchains.model import Toolchain
from kbtools.verification.model import Result, Task


class CachedVerdict(msgspec.Struct, frozen=True, array_like=True):
    """The verdict on a snippet that is not run."""

    verdict: Verdict
    remembered: bool
    """Whether it follows from an earlier run; otherwise the toolchain cannot run the snippet."""


class CachedVerdicts:
    """The verdicts on a toolchain that nothing has changed since they were kept.

    None of them is red. Their results have no outcome: who reports outcomes does not use them.
    """

    def __init__(
        self,
        config: Config,
        toolchain: Toolchain,
        name: str | None,
        timeout: float | None,
        pages: Mapping[str, FileState],
    ) -> None:
        """Reads what was kept.

        Args:
            config: Of the knowledge base.
            toolchain: On which the snippets are verified.
            name: Its name in `toolchains.toml`, where it has one.
            timeout: Seconds that the call gives each snippet, in place of its own limit.
            pages: Path of an article → the state of its file from which it was read.
        """
        helper = file_state(REPRO)
        self._cache = Cache(
            *(config.cache, "verdicts", dict[str, CachedVerdict]),
            *(config, toolchain, name, timeout, helper),
        )
        self._config, self._pages = config, pages
        self._now = time.time_ns()
        self._memory: dict[str, FileState] = {}

    def split(self, tasks: Iterable[Task]) -> tuple[list[Result], list[Task]]:
        """The results that are known, and the tasks whose results are not."""
        results: list[Result] = []
        others: list[Task] = []
        verdicts: dict[str, Mapping[str, CachedVerdict]] = {}
        for task in tasks:
            article = task.article
            if article.id not in verdicts:
                verdicts[article.id] = self._verdicts(article)
            if cached := verdicts[article.id].get(task.snippet.id):
                results.append(Result(task, cached.verdict, remembered=cached.remembered))
            else:
                others.append(task)
        return results, others

    def keep(self, results: Sequence[Result]) -> None:
        """Keeps the verdicts that follow from files alone, so that they are known the next time.

        Args:
            results: Of the tasks that `split` did not know.
        """
        by_article: dict[str, list[Result]] = {}
        for result in results:
            by_article.setdefault(result.task.article.id, []).append(result)
        for identifier, of_article in by_article.items():
            article = of_article[0].task.article
            page, memory = self._pages.get(article.path), self._memory.get(identifier)
            if page is None or memory is None or file_state(self._file(article)) != memory:
                continue
            verdicts = dict(self._verdicts(article))
            for result in of_article:
                is_settled = result.remembered or verdict_without_run(result.task.expected)
                if is_settled and result.verdict.colour != "red":
                    cached = CachedVerdict(result.verdict, result.remembered)
                    verdicts[result.task.snippet.id] = cached
            self._cache.put(identifier, verdicts, page, memory, now=self._now)
        self._cache.save()

    def _verdicts(self, article: Article) -> Mapping[str, CachedVerdict]:
        page = self._pages.get(article.path)
        if page is None:  # the article was read just now
            return {}
        memory = self._memory.setdefault(article.id, file_state(self._file(article)))
        return self._cache.get(article.id, page, memory) or {}

    def _file(self, article: Article) -> Path:
        return store.file_of(self._config.memory, article.id)
