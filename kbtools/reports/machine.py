"""For programs: JSON and JUnit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import msgspec
from junitparser import Error, Failure, JUnitXml, Skipped, TestCase, TestSuite

from kbtools.reports import text
from kbtools.toolchain import Toolchain
from kbtools.verifying import Result

SCHEMA = 1


def as_json(results: Iterable[Result], toolchain: Toolchain) -> bytes:
    """`{"schema", "toolchain", "results": […], "summary": {verdict: count}}`."""
    rows = [_row(result) for result in results]
    counts = Counter(row["verdict"] for row in rows)
    whole = {"schema": SCHEMA, "toolchain": toolchain, "results": rows, "summary": counts}
    return msgspec.json.format(msgspec.json.encode(whole), indent=1) + b"\n"


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


def as_junit(results: Iterable[Result], toolchain: Toolchain) -> bytes:
    """A suite for each article: red is a failure, grey is skipped, `inconclusive` is an error."""
    suites: dict[str, TestSuite] = {}
    for result in results:
        task = result.task
        suite = suites.setdefault(task.article.id, TestSuite(task.article.id))
        case = TestCase(
            f"{task.snippet.id} ({task.snippet.role})",
            classname=task.article.id,
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
    whole = JUnitXml(f"kbtools verify on {toolchain.label}")
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
