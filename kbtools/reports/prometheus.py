"""Metrics in the text format of Prometheus, for the textfile collector of its node exporter."""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from kbtools.articles.model import Article
from kbtools.config import Config
from kbtools.evidence import store
from kbtools.evidence.state import state_of
from kbtools.evidence.verdicts import VerdictName
from kbtools.verification.verifier import ToolchainRun

WORDS = ("contradicted", "reproduced", "resolved", "holds", "not run", "retired")
"""Every state of an article: one of which there is none counts 0, and is not missing."""

Sample = tuple[dict[str, str], float]


def as_prometheus(
    runs: Sequence[ToolchainRun],
    articles: Iterable[Article],
    config: Config,
    now: datetime.datetime,
) -> bytes:
    """What the runs came to, and how the articles stand by all evidence that is recorded."""
    known = tuple(articles)
    states = {one.id: state_of(one, config).word for one in known}
    newest = {}
    for one in known:
        digests = {snippet.digest for snippet in one.snippets}
        rows = store.read(config.evidence, one.id)
        if seen := [row.when.timestamp() for row in rows if row.code in digests]:
            newest[one.id] = max(seen)
    count = Counter(states.values())
    families = (
        _family(
            "kbtools_verify_snippets",
            "Snippets of the last run by verdict.",
            (({**_of(run), "verdict": name}, n) for run in runs for name, n in _verdicts(run)),
        ),
        _family(
            "kbtools_verify_duration_seconds",
            "Wall time of the last run.",
            ((_of(run), run.seconds) for run in runs),
        ),
        _family(
            "kbtools_verify_last_run_timestamp_seconds",
            "When the last run ended.",
            [({}, now.timestamp())],
        ),
        _family(
            "kbtools_articles",
            "Articles by the state that follows from recorded evidence.",
            (({"state": word}, count[word]) for word in WORDS),
        ),
        _family(
            "kbtools_article_contradicted",
            "Whether recorded evidence contradicts a claim of the article.",
            (({"article": one.id}, states[one.id] == "contradicted") for one in known),
        ),
        _family(
            "kbtools_article_evidence_timestamp_seconds",
            "When the newest evidence of the article was seen; no sample where there is none.",
            (({"article": article}, when) for article, when in newest.items()),
        ),
        _family(
            "kbtools_evidence_timestamp_seconds",
            "When the newest of all evidence was seen.",
            [({}, max(newest.values()))] if newest else [],
        ),
    )
    return "".join(line for family in families for line in family).encode()


def _of(run: ToolchainRun) -> dict[str, str]:
    gpus = run.toolchain.gpus
    return {"toolchain": run.name or run.toolchain.brief, "gpu": gpus[0].name if gpus else ""}


def _verdicts(run: ToolchainRun) -> Iterator[tuple[str, int]]:
    counts = Counter(result.verdict.name for result in run.results)
    for name in VerdictName:
        yield str(name), counts[name]


def _family(name: str, help: str, samples: Iterable[Sample]) -> Iterator[str]:
    yield f"# HELP {name} {help}\n# TYPE {name} gauge\n"
    for labels, value in samples:
        shown = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels.items())
        # 15 digits: a time in seconds keeps its fraction
        yield f"{name}{'{' + shown + '}' if shown else ''} {float(value):.15g}\n"


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")
