"""Results of runs as JSON, for programs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import msgspec

from kbtools.articles.model import Role
from kbtools.evidence.verdicts import Colour, Expectation, VerdictName
from kbtools.outcome import Outcome
from kbtools.toolchains.model import Toolchain
from kbtools.verification.model import Result, ToolchainRun

SCHEMA = 1


class _Row(msgspec.Struct, frozen=True):
    article: str
    snippet: str
    role: Role
    verdict: VerdictName
    colour: Colour
    reason: str
    expected: Expectation
    seconds: float
    cached: bool
    path: str
    line: int
    outcome: Outcome | None


class _OneRun(msgspec.Struct, frozen=True):
    schema: int
    toolchain: Toolchain
    seconds: float
    """Wall time of the run."""
    unsandboxed: str
    results: list[_Row]
    summary: dict[str, int]
    """Verdict → how many snippets have it."""
    left_out: tuple[str, ...]
    """Snippets that `--quick` left out, as in `KB0002/r1`: no result is among `results`."""


class _NamedRun(msgspec.Struct, frozen=True):
    name: str | None
    toolchain: Toolchain
    seconds: float
    unsandboxed: str
    results: list[_Row]
    summary: dict[str, int]
    left_out: tuple[str, ...]


class _SeveralRuns(msgspec.Struct, frozen=True):
    schema: int
    runs: list[_NamedRun]


def as_json(runs: Sequence[ToolchainRun]) -> bytes:
    """`{"schema", "toolchain", "seconds", "unsandboxed", "results": […], "summary": {verdict:
    count}, "left_out": […]}`; with several toolchains `{"schema", "runs": [{"name", "toolchain",
    …}]}`.
    """
    document: _OneRun | _SeveralRuns
    if len(runs) == 1:
        [run] = runs
        rows = [_row(result) for result in run.results]
        document = _OneRun(
            SCHEMA,
            run.toolchain,
            round(run.seconds, 3),
            run.unsandboxed,
            rows,
            _summary(rows),
            run.left_out_names,
        )
    else:
        document = _SeveralRuns(SCHEMA, [_named(run) for run in runs])
    return msgspec.json.format(msgspec.json.encode(document), indent=1) + b"\n"


def _named(run: ToolchainRun) -> _NamedRun:
    rows = [_row(result) for result in run.results]
    return _NamedRun(
        run.name,
        run.toolchain,
        round(run.seconds, 3),
        run.unsandboxed,
        rows,
        _summary(rows),
        run.left_out_names,
    )


def _summary(rows: Sequence[_Row]) -> dict[str, int]:
    return dict(Counter(str(row.verdict) for row in rows))


def _row(result: Result) -> _Row:
    task, outcome = result.task, result.outcome
    return _Row(
        article=task.article.id,
        snippet=task.snippet.id,
        role=task.snippet.role,
        verdict=result.verdict.name,
        colour=result.verdict.colour,
        reason=result.verdict.reason,
        expected=task.expected,
        seconds=outcome.seconds if outcome else 0.0,
        cached=result.remembered,
        path=task.snippet.place.path,
        line=task.snippet.place.line,
        outcome=outcome,
    )
