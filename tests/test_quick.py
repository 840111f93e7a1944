"""`verify --quick`: what it runs, what it leaves, and how every report says so."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import sarif_kit.validate
from bases import Base, fence
from junitparser import JUnitXml
from prometheus_client.parser import text_string_to_metric_families

SLEEPS = "import time; time.sleep({})"


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A knowledge base whose evidence has quick and slow snippets, and no memory of its runs."""
    root = tmp_path_factory.mktemp("recorded")
    base = Base.make(root / "base", root)
    base.article(
        fence("python repro id=r1", f"{SLEEPS.format(1.2)}\nraise ValueError('the failure')"),
        fence("python repro id=r2", f"{SLEEPS.format(1.7)}\nraise ValueError('the failure')"),
        fence("python fix id=f1", SLEEPS.format(1.7)),
        fence("python fix id=f2", SLEEPS.format(1.2)),
        fence("python fix id=f3 requires=gpus:9", "assert True"),
        fence("python practice id=p1", SLEEPS.format(1.3)),
        fence("python practice id=p2", "assert True"),
    )
    base.article(
        fence("python practice id=p1", SLEEPS.format(1.2)),
        fence("python practice id=p2", SLEEPS.format(1.7)),
        number=2,
    )
    assert base.kbtools("verify", "--record", "--jobs", "4").code == 0
    shutil.rmtree(base.root / ".kbtools")
    return base.root


@pytest.fixture
def slow(recorded: Path, tmp_path: Path, base: Base) -> Base:
    """A copy of that knowledge base, to be verified."""
    shutil.copytree(recorded, tmp_path / "slow")
    return Base(tmp_path / "slow", base.temporary)


def test_what_is_run(slow: Base) -> None:
    """Quick snippets, and the quickest repro and fix of an article; else its quickest snippet.

    What the machine cannot run is skipped as ever; what is left out has no verdict at all.
    """
    finished = slow.verify("--quick")
    assert finished.code == 0
    assert finished.verdicts == {
        "KB0001/r1": "reproduced",
        "KB0001/f2": "holds",
        "KB0001/f3": "skipped",
        "KB0001/p2": "holds",
        "KB0002/p1": "holds",
    }
    assert finished.json["left_out"] == ["KB0001/r2", "KB0001/f1", "KB0001/p1", "KB0002/p2"]
    assert finished.json["summary"] == {"reproduced": 1, "holds": 3, "skipped": 1}
    assert "4 slower snippets left, less than a minute: kbtools verify\n" in finished.out


def test_the_command_runs_the_rest(slow: Base) -> None:
    """The command of the summary runs what was left; then `--quick` leaves nothing."""
    slow.verify("--quick", "KB0001")
    rest = slow.verify("KB0001")
    ran = {row["snippet"] for row in rest.json["results"] if not row["cached"]}
    assert ran == {"r2", "f1", "p1", "f3"}
    again = slow.verify("--quick", "KB0001")
    assert again.json["left_out"] == []
    assert len(again.verdicts) == 7
    assert "left" not in again.out
    assert "(6 remembered" in again.out


def test_what_was_never_recorded_is_run(slow: Base) -> None:
    """A snippet without evidence is of the first tier: nobody knows yet how long it takes."""
    file = slow.root / "kb" / "KB0002-an-article.md"
    new = fence("python practice id=p3", SLEEPS.format(1.3))
    file.write_text(file.read_text("utf-8").replace("## Fix\n", f"{new}\n## Fix\n"), "utf-8")
    finished = slow.verify("--quick", "KB0002")
    assert finished.verdicts == {"KB0002/p3": "holds"}
    assert finished.json["left_out"] == ["KB0002/p1", "KB0002/p2"]


def test_the_command_names_what_was_named(slow: Base) -> None:
    """The command of the summary is about what the call named, and no more."""
    finished = slow.verify("--quick", "KB0001/r1", "KB0001/r2")
    command = "kbtools verify KB0001/r1 KB0001/r2"
    assert f"1 slower snippet left, less than a minute: {command}\n" in finished.out


def test_reports(slow: Base, tmp_path: Path) -> None:
    """No report has a result for what was left out; each says that it was left out."""
    files = {name: tmp_path / name for name in ("junit", "sarif", "prometheus", "summary")}
    slow.verify("--quick", *(word for name in files for word in (f"--{name}", str(files[name]))))
    suites = {suite.name: suite for suite in JUnitXml.fromfile(str(files["junit"]))}
    assert [case.name for case in suites["KB0002"]] == ["p1 (practice)"]
    properties = {entry.name: entry.value for entry in suites["KB0001"].properties()}
    assert properties["left out"] == "KB0001/r2 KB0001/f1 KB0001/p1"
    assert suites["KB0001"].skipped == 1
    log = json.loads(files["sarif"].read_bytes())
    assert sarif_kit.validate.validation_errors(log) == []
    [run] = log["runs"]
    assert run["properties"]["leftOut"][-1] == "KB0002/p2"
    assert run["automationDetails"]["id"] == "kbtools-verify/this-interpreter/quick/"
    text = files["prometheus"].read_text("utf-8")
    families = {family.name: family for family in text_string_to_metric_families(text)}
    assert families["kbtools_verify_left_out_snippets"].samples[0].value == 4
    assert "4 slower snippets left: `kbtools verify`" in files["summary"].read_text("utf-8")


def test_a_whole_run_closes_alerts(slow: Base, tmp_path: Path) -> None:
    """SARIF of a run that left nothing out has the category of whole runs."""
    file = tmp_path / "verify.sarif"
    slow.verify("KB0002/p1", "--sarif", str(file))
    [run] = json.loads(file.read_bytes())["runs"]
    assert run["automationDetails"]["id"] == "kbtools-verify/this-interpreter/"
    assert run["properties"]["leftOut"] == []
