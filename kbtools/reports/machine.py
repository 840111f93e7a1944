"""For programs: JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import msgspec

from kbtools.verification.model import Result, ToolchainRun

SCHEMA = 1


def as_json(runs: Sequence[ToolchainRun]) -> bytes:
    """`{"schema", "toolchain", "unsandboxed", "results": […], "summary": {verdict: count}}`.

    With several toolchains: `{"schema", "runs": [{"name", "toolchain", "results", "summary"}]}`.
    """
    if len(runs) == 1:
        whole = {"schema": SCHEMA, **_run(runs[0])}
    else:
        whole = {"schema": SCHEMA, "runs": [{"name": one.name, **_run(one)} for one in runs]}
    return msgspec.json.format(msgspec.json.encode(whole), indent=1) + b"\n"


def _run(run: ToolchainRun) -> dict[str, Any]:
    rows = [_row(result) for result in run.results]
    counts = Counter(row["verdict"] for row in rows)
    return {
        "toolchain": run.toolchain,
        "unsandboxed": run.unsandboxed,
        "results": rows,
        "summary": counts,
    }


def _row(result: Result) -> dict[str, Any]:
    task, outcome = result.task, result.outcome
    return {
        "article": task.article.id,
        "snippet": task.snippet.id,
        "role": task.snippet.role,
        "verdict": result.verdict.name,
        "colour": result.verdict.colour,
        "reason": result.verdict.reason,
        "expected": task.expected,
        "seconds": outcome.seconds if outcome else 0.0,
        "cached": result.remembered,
        "path": task.snippet.place.path,
        "line": task.snippet.place.line,
        "outcome": outcome,
    }
