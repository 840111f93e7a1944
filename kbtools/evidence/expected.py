"""How long a snippet is expected to take, by the runs that were made of its code."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from kbtools.articles.model import Article
from kbtools.config import Config
from kbtools.evidence import store
from kbtools.evidence.rows import EvidenceError, Row

WORTHWHILE = 2.0
"""Seconds below which it does not matter whether a snippet sleeps."""
ASLEEP = 0.2
"""Part of its wall time that the CPU time of a snippet that mostly sleeps does not exceed."""


class ExpectedTime(msgspec.Struct, frozen=True):
    """What one run of a snippet takes: medians of its runs so far."""

    seconds: float | None = None
    """Wall time; None where no run is recorded."""
    cpu_seconds: float | None = None
    """CPU time; None where no run is recorded, or none that measured it."""

    @property
    def sleeps(self) -> bool:
        """Whether it is known to leave a processor to others for most of its time."""
        if self.seconds is None or self.cpu_seconds is None:
            return False
        return self.seconds >= WORTHWHILE and self.cpu_seconds <= ASLEEP * self.seconds


def recorded_times(articles: Iterable[Article], config: Config) -> dict[str, ExpectedTime]:
    """Name of a snippet → what it takes by the evidence, on machines of whatever kind.

    Every checkout of a commit gives the same answer: machines that share out a run agree.

    Args:
        articles: Whose snippets are looked up; those without a row have no entry.
        config: Of the knowledge base.

    Raises:
        EvidenceError: a file of evidence cannot be read.
    """
    return {
        name: time
        for article in articles
        for name, time in _times(article, store.read(config.evidence, article.id)).items()
    }


def expected_times(articles: Iterable[Article], config: Config) -> dict[str, ExpectedTime]:
    """Name of a snippet → what it takes: here, where this machine remembers runs of it.

    Else what the evidence says. Memory or evidence that cannot be read gives no entry: an estimate
    is no reason to stop.

    Args:
        articles: Whose snippets are looked up; those that were never run have no entry.
        config: Of the knowledge base.
    """
    times: dict[str, ExpectedTime] = {}
    for article in articles:
        for folder in (config.evidence, config.memory):
            for name, time in _times(article, _readable(folder, article.id)).items():
                known = times.get(name, ExpectedTime())
                # a row without CPU time hides none that was measured elsewhere
                cpu = known.cpu_seconds if time.cpu_seconds is None else time.cpu_seconds
                times[name] = ExpectedTime(time.seconds, cpu)
    return times


def wall_seconds(times: Mapping[str, ExpectedTime]) -> dict[str, float]:
    """Name of a snippet → wall seconds, of those where they are known."""
    return {name: time.seconds for name, time in times.items() if time.seconds is not None}


def _readable(folder: Path, article: str) -> tuple[Row, ...]:
    try:
        return store.read(folder, article)
    except EvidenceError:
        return ()


def _times(article: Article, rows: tuple[Row, ...]) -> dict[str, ExpectedTime]:
    """Medians of the rows of each snippet that has some."""
    times = {}
    for snippet in article.snippets:
        outcomes = [row.outcome for row in store.of_snippet(rows, snippet)]
        cpu = [run.cpu_seconds for run in outcomes if run.cpu_seconds is not None]
        if outcomes:
            times[snippet.name] = ExpectedTime(
                statistics.median(run.seconds for run in outcomes),
                statistics.median(cpu) if cpu else None,
            )
    return times
