"""Metrics in the text format of Prometheus, for the textfile collector of its node exporter."""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

import msgspec
from prometheus_client import generate_latest
from prometheus_client.core import GaugeMetricFamily

from kbtools.articles.model import Article
from kbtools.config import Config
from kbtools.evidence.state import observations, state_from
from kbtools.evidence.verdicts import VerdictName
from kbtools.verification.model import ToolchainRun

STATES = ("contradicted", "reproduced", "resolved", "holds", "not run", "retired")
"""Every state of an article; a state without articles is exported as 0, not left out."""


class _Standing(msgspec.Struct, frozen=True):
    """How an article stands by the evidence that is recorded of it."""

    article: str
    state: str
    newest: float | None
    """Seconds since 1970 of the newest row that counts; None if none does."""


class _Metrics:
    """A collector without a registry, so that no metric of this process is exported."""

    def __init__(self, families: Iterable[GaugeMetricFamily]) -> None:
        self.families = tuple(families)

    def collect(self) -> Iterable[GaugeMetricFamily]:
        """The families, as `generate_latest` asks for them."""
        return self.families


def as_prometheus(
    runs: Sequence[ToolchainRun],
    articles: Iterable[Article],
    config: Config,
    now: datetime.datetime,
) -> bytes:
    """Metrics of the last run, and of the articles by all recorded evidence.

    Args:
        runs: The last run, by toolchain.
        articles: Every article whose state is exported.
        config: Says where the evidence is.
        now: When the run ended.

    Raises:
        EvidenceError: recorded evidence cannot be read.
    """
    standings = [_standing(article, config) for article in articles]
    families = [*_of_runs(runs, now), *_of_articles(standings)]
    return generate_latest(_Metrics(families))


def _standing(article: Article, config: Config) -> _Standing:
    observed = observations(article, config)
    newest = max((observation.row.when.timestamp() for observation in observed), default=None)
    return _Standing(article.id, state_from(article, observed).word, newest)


def _of_runs(runs: Sequence[ToolchainRun], now: datetime.datetime) -> Iterator[GaugeMetricFamily]:
    snippets = _gauge(
        "kbtools_verify_snippets",
        "Snippets of the last run by verdict.",
        "toolchain",
        "gpu",
        "verdict",
    )
    duration = _gauge(
        "kbtools_verify_duration_seconds", "Wall time of the last run.", "toolchain", "gpu"
    )
    left_out = _gauge(
        "kbtools_verify_left_out_snippets",
        "Snippets that the last run left out, by --quick.",
        "toolchain",
        "gpu",
    )
    for run in runs:
        gpus = run.toolchain.gpus
        labels = [run.name or run.brief, gpus[0].name if gpus else ""]
        counts = Counter(result.verdict.name for result in run.results)
        for verdict in VerdictName:
            snippets.add_metric([*labels, str(verdict)], counts[verdict])
        duration.add_metric(labels, run.seconds)
        left_out.add_metric(labels, len(run.left_out_names))
    ended = _gauge("kbtools_verify_last_run_timestamp_seconds", "When the last run ended.")
    ended.add_metric([], now.timestamp())
    yield from (snippets, duration, left_out, ended)


def _of_articles(standings: Sequence[_Standing]) -> Iterator[GaugeMetricFamily]:
    counts = Counter(standing.state for standing in standings)
    states = _gauge(
        "kbtools_articles", "Articles by the state that follows from recorded evidence.", "state"
    )
    for state in STATES:
        states.add_metric([state], counts[state])
    contradicted = _gauge(
        "kbtools_article_contradicted",
        "Whether recorded evidence contradicts a claim of the article.",
        "article",
    )
    newest = _gauge(
        "kbtools_article_evidence_timestamp_seconds",
        "When the newest evidence of the article was seen; no sample where there is none.",
        "article",
    )
    for standing in standings:
        contradicted.add_metric([standing.article], standing.state == "contradicted")
        if standing.newest is not None:
            newest.add_metric([standing.article], standing.newest)
    newest_of_all = _gauge(
        "kbtools_evidence_timestamp_seconds", "When the newest of all evidence was seen."
    )
    if newest.samples:
        newest_of_all.add_metric([], max(sample.value for sample in newest.samples))
    yield from (states, contradicted, newest, newest_of_all)


def _gauge(name: str, description: str, *labels: str) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, description, labels=labels)
