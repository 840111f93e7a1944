"""SARIF 2.1.0, as code scanning reads it: red verdicts and broken rules, each at its line."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import Any
from urllib.parse import quote

import msgspec

from kbtools import __version__
from kbtools.articles.model import Problem
from kbtools.checks.rules import RULES
from kbtools.evidence.verdicts import RED, VerdictName
from kbtools.reports.places import failing_line
from kbtools.verification.model import Result, ToolchainRun

THIS_INTERPRETER = "this-interpreter"
"""Stands for the name of a toolchain that has none."""
SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)

MEANING = {
    VerdictName.NOT_REPRODUCED: "An article says that this fails here, and it passes.",
    VerdictName.OTHER_FAILURE: "This fails, but not as its article says.",
    VerdictName.REGRESSED: "An article says that this does not fail here, and it fails.",
    VerdictName.BROKEN: "What an article says that helps or is sound does not run to its end.",
}


def of_runs(runs: Sequence[ToolchainRun], prefix: str = "") -> bytes:
    """A run of SARIF for each toolchain, with a result for each claim that is contradicted.

    What could not be concluded is a notification and no result: it says nothing of an article.
    """
    return _whole([_verified(run, prefix) for run in runs])


def of_problems(problems: Iterable[Problem], prefix: str = "") -> bytes:
    """What `kbtools check` found."""
    found = tuple(problems)
    broken = {problem.rule for problem in found}
    rules = [_rule(one.code, one.name, one.page) for one in RULES if one.code in broken]
    known = {rule["id"] for rule in rules}
    rules += [_rule(code, code, code) for code in sorted(broken - known)]
    results = [
        _result(
            problem.rule,
            f"{problem.message}\n{problem.help}",
            prefix + problem.place.path,
            problem.place.line,
            (problem.rule, problem.place.path, problem.source.strip(), problem.message),
        )
        for problem in found
    ]
    return _whole([_run("kbtools-check/", rules, results)])


def _whole(runs: list[dict[str, Any]]) -> bytes:
    log = {"$schema": SCHEMA, "version": "2.1.0", "runs": runs}
    return msgspec.json.format(msgspec.json.encode(log), indent=1) + b"\n"


def _verified(run: ToolchainRun, prefix: str) -> dict[str, Any]:
    rules = [_rule(str(name), str(name).replace("-", " "), MEANING[name]) for name in RED]
    name = run.name or THIS_INTERPRETER
    results = [_red(one, run, prefix) for one in run.results if one.verdict.colour == "red"]
    notes = [
        {"level": "warning", "message": {"text": f"{one.task.snippet.name}: {said}"}}
        for one in run.results
        for said in (one.trouble, _inconclusive(one))
        if said
    ]
    whole = _run(f"kbtools-verify/{quote(name)}/", rules, results)
    invocation = {"executionSuccessful": True, "toolExecutionNotifications": notes}
    toolchain = run.toolchain
    properties = {"toolchain": run.label, "driver": toolchain.driver}
    properties["unsandboxed"] = run.unsandboxed
    return {**whole, "invocations": [invocation], "properties": properties}


def _inconclusive(result: Result) -> str:
    one = result.verdict
    return f"inconclusive: {one.reason}" if one.name is VerdictName.INCONCLUSIVE else ""


def _red(result: Result, run: ToolchainRun, prefix: str) -> dict[str, Any]:
    task, one = result.task, result.verdict
    text = f"{one.name} {task.snippet.name} ({task.snippet.role}): {one.reason}"
    text += f"\n{task.expected.reason}. On {task.toolchain.label(run.headline)}."
    # not the line: a claim is the same one when a paragraph is added above it
    same = (task.snippet.name, str(one.name), run.name or THIS_INTERPRETER)
    path = prefix + task.snippet.place.path
    return _result(str(one.name), text, path, failing_line(result), same)


def _rule(code: str, name: str, page: str) -> dict[str, Any]:
    return {
        "id": code,
        "name": "".join(word.capitalize() for word in name.split()),
        "shortDescription": {"text": page.partition("\n")[0]},
        "fullDescription": {"text": page},
        "help": {"text": page},
        "defaultConfiguration": {"level": "error"},
    }


def _run(
    category: str, rules: list[dict[str, Any]], results: list[dict[str, Any]]
) -> dict[str, Any]:
    driver = {"name": "kbtools", "version": __version__, "rules": rules}
    return {
        "tool": {"driver": driver},
        "automationDetails": {"id": category},
        "columnKind": "unicodeCodePoints",
        "results": results,
    }


def _result(rule: str, text: str, path: str, line: int, same: Iterable[str]) -> dict[str, Any]:
    place = {
        "artifactLocation": {"uri": quote(path), "uriBaseId": "%SRCROOT%"},
        "region": {"startLine": line},
    }
    digest = hashlib.sha256("\0".join(same).encode()).hexdigest()[:16]
    return {
        "ruleId": rule,
        "level": "error",
        "message": {"text": text},
        "locations": [{"physicalLocation": place}],
        # the name that code scanning knows an alert by, so that it is one alert from night to night
        "partialFingerprints": {"primaryLocationLineHash": f"{digest}:1"},
    }
