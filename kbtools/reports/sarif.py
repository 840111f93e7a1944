"""SARIF 2.1.0 for code scanning: red verdicts and broken rules, each at its line."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
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
    VerdictName.UNTRUE: "A statement of an article is said to hold here, and it does not.",
    VerdictName.TOO_NARROW: "A statement of an article is said not to hold here, and it does.",
}


class _Rule(msgspec.Struct, frozen=True):
    """What a result may be about."""

    code: str
    name: str
    page: str
    """What the rule demands; its first line is a summary."""


class _Alert(msgspec.Struct, frozen=True):
    """A result at a line of a file."""

    rule: str
    text: str
    path: str
    line: int
    identity: tuple[str, ...]
    """Equal for two alerts that are one and the same on two days."""


class _Properties(msgspec.Struct, frozen=True):
    """What SARIF has no words for."""

    toolchain: str
    driver: str | None
    unsandboxed: str
    left_out: tuple[str, ...] = msgspec.field(name="leftOut")
    """Snippets that `--quick` left out."""


class _Run(msgspec.Struct, frozen=True):
    """A run of a tool: of `kbtools check`, or of `kbtools verify` on one toolchain."""

    category: str
    """Of code scanning: a later run of the same category replaces this one."""
    rules: Sequence[_Rule]
    alerts: Sequence[_Alert]
    notes: Sequence[str] | None = None
    """Warnings about the run itself; None if it was not a run of snippets."""
    properties: _Properties | None = None


def of_runs(runs: Sequence[ToolchainRun], prefix: str = "") -> bytes:
    """A run of SARIF for each toolchain, with a result for each claim that is contradicted.

    What could not be concluded is a notification and not a result: it says nothing of an article.
    `prefix` is put before the paths.
    """
    return _log([_verified(run, prefix) for run in runs])


def of_problems(problems: Iterable[Problem], prefix: str = "") -> bytes:
    """The problems that `kbtools check` reports. `prefix` is put before their paths."""
    alerts = [
        _Alert(
            problem.rule,
            f"{problem.message}\n{problem.help}",
            prefix + problem.place.path,
            problem.place.line,
            (problem.rule, problem.place.path, problem.source.strip(), problem.message),
        )
        for problem in problems
    ]
    broken = {alert.rule for alert in alerts}
    rules = [_Rule(rule.code, rule.name, rule.page) for rule in RULES if rule.code in broken]
    without_page = broken - {rule.code for rule in rules}
    rules += [_Rule(code, code, code) for code in sorted(without_page)]
    return _log([_Run("kbtools-check/", rules, alerts)])


def _verified(run: ToolchainRun, prefix: str) -> _Run:
    name = run.name or THIS_INTERPRETER
    # of its own: in that of whole runs, an alert about what is left out would be taken for mended
    part = "quick/" if run.left_out else ""
    return _Run(
        category=f"kbtools-verify/{quote(name)}/{part}",
        rules=[_Rule(str(red), str(red).replace("-", " "), MEANING[red]) for red in RED],
        alerts=[
            _red(result, run, prefix) for result in run.results if result.verdict.colour == "red"
        ],
        notes=[
            f"{result.task.snippet.name}: {note}"
            for result in run.results
            for note in (result.trouble, _inconclusive(result))
            if note
        ],
        properties=_Properties(
            run.label, run.toolchain.driver, run.unsandboxed, run.left_out_names
        ),
    )


def _inconclusive(result: Result) -> str:
    verdict = result.verdict
    if verdict.name is VerdictName.INCONCLUSIVE:
        return f"inconclusive: {verdict.reason}"
    return ""


def _red(result: Result, run: ToolchainRun, prefix: str) -> _Alert:
    task, verdict = result.task, result.verdict
    text = f"{verdict.name} {task.snippet.name} ({task.snippet.role}): {verdict.reason}"
    text += f"\n{task.expected.reason}. On {task.toolchain.label(run.headline)}."
    # not the line: a claim is the same one when a paragraph is added above it
    identity = (task.snippet.name, str(verdict.name), run.name or THIS_INTERPRETER)
    path = prefix + task.snippet.place.path
    return _Alert(str(verdict.name), text, path, failing_line(result), identity)


def _log(runs: Iterable[_Run]) -> bytes:
    log = {"$schema": SCHEMA, "version": "2.1.0", "runs": [_run_json(run) for run in runs]}
    return msgspec.json.format(msgspec.json.encode(log), indent=1) + b"\n"


def _run_json(run: _Run) -> dict[str, object]:
    driver = {
        "name": "kbtools",
        "version": __version__,
        "rules": [_rule_json(rule) for rule in run.rules],
    }
    values: dict[str, object] = {
        "tool": {"driver": driver},
        "automationDetails": {"id": run.category},
        "columnKind": "unicodeCodePoints",
        "results": [_alert_json(alert) for alert in run.alerts],
    }
    if run.notes is not None:
        notes = [{"level": "warning", "message": {"text": note}} for note in run.notes]
        invocation = {"executionSuccessful": True, "toolExecutionNotifications": notes}
        values["invocations"] = [invocation]
    if run.properties:
        values["properties"] = run.properties
    return values


def _rule_json(rule: _Rule) -> dict[str, object]:
    return {
        "id": rule.code,
        "name": "".join(word.capitalize() for word in rule.name.split()),
        "shortDescription": {"text": rule.page.partition("\n")[0]},
        "fullDescription": {"text": rule.page},
        "help": {"text": rule.page},
        "defaultConfiguration": {"level": "error"},
    }


def _alert_json(alert: _Alert) -> dict[str, object]:
    location = {
        "artifactLocation": {"uri": quote(alert.path), "uriBaseId": "%SRCROOT%"},
        "region": {"startLine": alert.line},
    }
    digest = hashlib.sha256("\0".join(alert.identity).encode()).hexdigest()[:16]
    return {
        "ruleId": alert.rule,
        "level": "error",
        "message": {"text": alert.text},
        "locations": [{"physicalLocation": location}],
        # the name that code scanning knows an alert by, so that it is one alert from night to night
        "partialFingerprints": {"primaryLocationLineHash": f"{digest}:1"},
    }
