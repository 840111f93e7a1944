"""For CI servers: JUnit XML, with what their viewers look for."""

from __future__ import annotations

from collections.abc import Sequence

import click
from junitparser import Attr, Error, Failure, IntAttr, JUnitXml, Skipped, TestCase, TestSuite

from kbtools.reports import text
from kbtools.reports.places import failing_line
from kbtools.verification.model import Result, ToolchainRun


class PlacedCase(TestCase):  # type: ignore[misc]
    """A test case that says where it stands: GitLab, CircleCI and others link `file` and `line`."""

    file = Attr()
    line = IntAttr()


def as_junit(runs: Sequence[ToolchainRun], prefix: str = "") -> bytes:
    """A suite for each article: red is a failure, grey is skipped, `inconclusive` is an error.

    With several toolchains, a suite for each article on each of them. Viewers show the text of a
    failure and what was printed, so the failure has what is needed to act, and the
    output is all that was kept. `prefix` is put before the paths.
    """
    suites: dict[str, TestSuite] = {}
    for run in runs:
        for result in run.results:
            name = result.task.article.id
            if len(runs) > 1:
                name = f"{name} on {run.name or run.label}"
            if name not in suites:
                suites[name] = _suite(name, run, result.task.article.id)
            suites[name].add_testcase(_case(result, name, prefix))
    labels = "; ".join(run.label for run in runs)
    document = JUnitXml(f"kbtools verify on {labels}")
    for name in sorted(suites):
        document.add_testsuite(suites[name])
    document.update_statistics()
    return bytes(document.tostring())


def _suite(name: str, run: ToolchainRun, article: str) -> TestSuite:
    suite, toolchain = TestSuite(name), run.toolchain
    suite.add_property("toolchain", run.label)
    suite.add_property("unsandboxed", run.unsandboxed)
    for key, value in (("name", run.name), ("driver", toolchain.driver), ("nvcc", toolchain.cuda)):
        if value:
            suite.add_property(key, value)
    left = [name for name in run.left_out_names if name.startswith(f"{article}/")]
    if left:
        suite.add_property("left out", " ".join(left))  # no case: they were not skipped
    for number, gpu in enumerate(toolchain.gpus):
        suite.add_property(f"gpu {number}", f"{gpu.name}, compute capability {gpu.sm}")
    return suite


def _case(result: Result, suite: str, prefix: str) -> PlacedCase:
    snippet, outcome, verdict = result.task.snippet, result.outcome, result.verdict
    case = PlacedCase(
        f"{snippet.id} ({snippet.role})", classname=suite, time=outcome.seconds if outcome else 0.0
    )
    case.file, case.line = prefix + snippet.place.path, failing_line(result)
    why = printable(f"{verdict.name}: {verdict.reason}")
    if verdict.colour == "red":
        failure = Failure(why, str(verdict.name))
        failure.text = printable(text.red(result))
        case.result = [failure]
    elif verdict.name == "inconclusive":
        case.result = [Error(why, "inconclusive")]
    elif verdict.colour == "grey":
        case.result = [Skipped(why, str(verdict.name))]
    if outcome and outcome.output and (verdict.colour == "red" or verdict.name == "inconclusive"):
        case.system_out = printable(outcome.output)
    return case


def printable(message: str) -> str:
    """Without what XML 1.0 cannot hold: control characters, terminal colours among them."""
    return "".join(
        c if c in "\t\n" or (c >= " " and c not in "\ufffe\uffff") else "�"
        for c in click.unstyle(message)
    )
