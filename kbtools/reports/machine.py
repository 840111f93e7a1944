"""For programs: JSON and JUnit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import msgspec
from junitparser import Error, Failure, JUnitXml, Skipped, TestCase, TestSuite

from kbtools.reports import text
from kbtools.verifying import Result, Verified

SCHEMA = 1


def as_json(runs: Sequence[Verified]) -> bytes:
    """`{"schema", "toolchain", "unsandboxed", "results": […], "summary": {verdict: count}}`.

    With several toolchains: `{"schema", "runs": [{"name", "toolchain", "results", "summary"}]}`.
    """
    if len(runs) == 1:
        whole = {"schema": SCHEMA, **_run(runs[0])}
    else:
        whole = {"schema": SCHEMA, "runs": [{"name": one.name, **_run(one)} for one in runs]}
    return msgspec.json.format(msgspec.json.encode(whole), indent=1) + b"\n"


def _run(run: Verified) -> dict[str, Any]:
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


def as_junit(runs: Sequence[Verified]) -> bytes:
    """A suite for each article: red is a failure, grey is skipped, `inconclusive` is an error.

    With several toolchains, a suite for each article on each of them.
    """
    suites: dict[str, TestSuite] = {}
    pairs = [(run, result) for run in runs for result in run.results]
    for one, result in pairs:
        task = result.task
        name = task.article.id
        if len(runs) > 1:
            name = f"{name} on {one.name or one.toolchain.label}"
        if name not in suites:
            suites[name] = TestSuite(name)
            suites[name].add_property("unsandboxed", one.unsandboxed)
        suite = suites[name]
        case = TestCase(
            f"{task.snippet.id} ({task.snippet.role})",
            classname=name,
            time=result.outcome.seconds if result.outcome else 0.0,
        )
        why = _printable(f"{result.verdict.name}: {result.verdict.reason}")
        if result.verdict.colour == "red":
            case.result = [Failure(why, str(result.verdict.name))]
            case.system_out = _printable(text.red(result))
        elif result.verdict.name == "inconclusive":
            case.result = [Error(why, "inconclusive")]
        elif result.verdict.colour == "grey":
            case.result = [Skipped(why)]
        suite.add_testcase(case)
    labels = "; ".join(run.toolchain.label for run in runs)
    whole = JUnitXml(f"kbtools verify on {labels}")
    for name in sorted(suites):
        whole.add_testsuite(suites[name])
    whole.update_statistics()
    return bytes(whole.tostring())


def _printable(said: str) -> str:
    """Without what XML 1.0 cannot hold: control characters, terminal colours among them."""
    import click

    plain = click.unstyle(said)
    return "".join(
        c if c in "\t\n" or (c >= " " and c not in "\ufffe\uffff") else "�" for c in plain
    )
