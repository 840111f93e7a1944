"""What the doctor printed, pasted with a log: versions and findings, and no line of the log."""

from __future__ import annotations

import json
import re
from pathlib import Path

import msgspec
import pytest
from bases import Base

from kbtools.articles.model import Signature
from kbtools.config import ToolchainForm
from kbtools.doctor import report
from kbtools.doctor.machine import Machine
from kbtools.doctor.planting import MachineSpec, plant
from kbtools.doctor.probe import FAULT, RISK, Examined, Finding, Probe
from kbtools.integrations.new_issue import Issue, reply_to
from kbtools.matching import Index, IndexEntry, Matcher
from kbtools.matching.doctor_report import read_report, without_report
from kbtools.matching.versions import version_patterns

FAILURE = "TileError: the tile is too large (512)"
FIRST = IndexEntry(
    id="KB0001",
    title="tile too large",
    summary="Make it smaller.",
    severity="blocks",
    affected=({"tiles": "<3.0"},),
    signatures=(Signature("the tile is too large", r"Error: the tile is too large \(\d+\)"),),
)
SECOND = msgspec.structs.replace(FIRST, id="KB0002", affected=())
OTHER = msgspec.structs.replace(
    FIRST, id="KB0003", affected=(), signatures=(Signature("ImportError: libtile.so.1: no such"),)
)
INDEX = Index(
    1,
    "tiles",
    "https://example.org/kb",
    (FIRST, SECOND, OTHER),
    versions=version_patterns(
        ({"tiles": "<3", "driver": "<600", "sm": ">=9.0"},), ToolchainForm(packages=("tiles",))
    ),
)
SMI = "nvidia-smi --query-gpu=name"


def nothing(machine: Machine) -> list[Finding]:
    """The function of a probe that is not run."""
    return []


def record(folder: Path, language: str = "en") -> dict[str, object]:
    """What the doctor says of a planted machine with a GPU, a fault and a risk."""
    machine = plant(
        MachineSpec(
            packages={"tiles": "2.4.0", "unnamed": "1.0"},
            commands={SMI: "A GPU, of a kind\n", f"{SMI},compute": "A GPU, 9.0, 570.86.15\n"},
        ),
        folder,
    )
    texts = {"KB0002": ["Tiles are large", "块太大"], "KB0003": ["No library", "没有库"]}
    about = report.About("tiles", "0.1.0", "https://example.org/kb", ["tiles"], texts)
    seen = (f"ImportError: libtile.so.1: no such file\n{FAILURE}", "没有")
    large = ("The tiles are too large.", "块太大。")
    missing = ("No library.", "没有库。")
    probes = [
        Probe("large", "KB0002", large, FAULT, "", False, nothing),
        Probe("missing", "KB0003", missing, RISK, ("use (it)", "使用"), False, nothing),
    ]
    findings = [
        Finding("/tiles", "512", ("256", "256"), "shrink"),
        Finding("/lib", seen, "", "ldconfig"),
    ]
    examined = [
        Examined(p, [finding], "", 0.0) for p, finding in zip(probes, findings, strict=True)
    ]
    return report.record_of(machine, examined, about, language, 0.1)


MARKUP = r"```(?:text)?|\*\*|</?details>|</?summary>|`|\]\(.*\)|\[(?=KB)|- "


def forms(folder: Path) -> dict[str, str]:
    """All that the doctor prints, in both languages, and as one copies it off a page."""
    texts: dict[str, str] = {}
    for language in ("en", "zh"):
        answers = record(folder / language, language)
        paste = report.as_paste(answers, {}, language, "https://example.org/kb")
        texts |= {
            f"{language} json": report.as_json(answers),
            f"{language} paste": paste,
            f"{language} text": report.as_text(answers, language, colour=True),
            f"{language} page": re.sub(MARKUP, "", paste),
        }
    return texts


FORMS = ("json", "paste", "text", "page")
NAMES = [f"{language} {form}" for language in ("en", "zh") for form in FORMS]


@pytest.mark.parametrize("name", NAMES)
def test_each_form_is_read(tmp_path: Path, name: str) -> None:
    """Versions, the GPU and findings are read; the lines are empty and keep their numbers."""
    text = forms(tmp_path)[name]
    rest, report_read = without_report(f"before\r\n{text}\n{FAILURE}\n")
    assert report_read is not None
    assert [(f.article, f.level) for f in report_read.findings] == [
        ("KB0002", "fault"),
        ("KB0003", "risk"),
    ]
    assert report_read.findings[0].summary == (
        "The tiles are too large." if "en" in name else "块太大。"
    )
    if "text" not in name:
        assert (report_read.versions["tiles"], report_read.versions["python"]) == (
            "2.4.0",
            "3.12.3",
        )
        assert (report_read.versions["driver"], report_read.versions["sm"]) == ("570.86.15", "9.0")
    assert rest.split("\n")[:2] == ["before\r", ""]
    assert rest.rstrip("\n").split("\n")[-1] == FAILURE
    assert rest.count("\n") == text.count("\n") + 3
    assert "ImportError" not in rest


def test_what_a_probe_saw_is_no_failure_of_the_log(tmp_path: Path) -> None:
    """The text of a finding reads like an error, and nothing failed."""
    for text in forms(tmp_path).values():
        answer = Matcher(INDEX).diagnose(text)
        assert (answer.first, answer.matches) == (None, ())
        assert [finding.article for finding in answer.findings] == ["KB0002", "KB0003"]


def test_its_versions_are_those_at_hand(tmp_path: Path) -> None:
    """They count before those of the log, and those of the program before both."""
    matcher = Matcher(INDEX)
    log = f"tiles==3.1.0\n{FAILURE}\n"
    assert matcher.diagnose(log).versions == {"tiles": "3.1.0"}
    pasted = log + report.as_json(record(tmp_path))
    versions = matcher.diagnose(pasted).versions
    assert versions == {"tiles": "2.4.0", "driver": "570.86.15", "sm": "9.0", "python": "3.12.3"}
    assert matcher.diagnose(pasted, {"tiles": "3.2.0"}).versions["tiles"] == "3.2.0"


def test_a_finding_decides_between_articles_of_one_line(tmp_path: Path) -> None:
    """Two articles print the line: the one whose cause was found comes first, and is sure."""
    matcher = Matcher(INDEX)
    log = f'tiles==2.0\nTraceback (most recent call last):\n  File "a.py", line 1\n{FAILURE}\n'
    tie = matcher.diagnose(log)
    assert [match.id for match in tie.matches] == ["KB0001", "KB0002"]
    assert not tie.matches[0].confident
    best = matcher.diagnose(log + report.as_paste(record(tmp_path), {}, "en")).matches
    assert [match.id for match in best] == ["KB0002", "KB0001"]
    assert (best[0].confident, best[0].tied, best[0].hints) == (True, (), ())


@pytest.mark.parametrize(
    "text",
    [
        "kbtools 0.1.0 doctor",
        "ran kbtools 0.1.0 doctor: it works",
        '{\n "schema": 1,\n "program": "kbtools 0.1.0",\n no end',
        '{\n "schema": 1,\n "program": "other 0.1.0"\n}',
        "kbtools 0.1.0 · tiles\nand no line that counts",
        "[" * 5000 + '"program": "kbtools ',
    ],
)
def test_what_is_no_report(text: str) -> None:
    """A text that only begins like one stays as it is."""
    assert without_report(text) == (text, None)


def test_a_flood_of_beginnings_takes_no_time() -> None:
    """Only the first few are looked at: anybody may paste them."""
    text = '{\n"schema": 1,\n"program": "kbtools 0.1.0",\n' * 40_000
    assert without_report(text) == (text, None)


def test_the_browser_reads_the_same(tmp_path: Path) -> None:
    """The box on the site and `diagnose` give one answer, and so does "is this you?"."""
    pytest.importorskip("py_mini_racer", reason="mini-racer is not installed")
    from v8 import Browser, evaluate

    matcher, browser = Matcher(INDEX), Browser(INDEX)
    texts = [*forms(tmp_path).values(), *forms(tmp_path / "more").values()]
    logs = [f"{FAILURE}\n{text}" for text in texts] + [f"{texts[0]}\r\n{texts[1]}\n{FAILURE}"]
    logs += [
        '{\n "schema": 1,\n "program": "kbtools 0.1.0",\n no end',
        f"{texts[0][:-3]}\n{FAILURE}",
    ]
    for log in logs:
        assert browser.diagnose(log) == json.loads(msgspec.json.encode(matcher.diagnose(log)))
    for name in ("en json", "zh paste", "en page"):
        call = f"JSON.stringify(parseToolchain({json.dumps(forms(tmp_path / name)[name])}))"
        toolchain = json.loads(evaluate(call))
        assert (toolchain["packages"], toolchain["python"]) == ({"tiles": "2.4.0"}, "3.12.3")
        assert (toolchain["driver"], toolchain["gpus"]) == ("570.86.15", [{"sm": "9.0"}])


def test_the_reply_to_an_issue(tmp_path: Path) -> None:
    """A tie in an issue is decided by the report in it; nothing of its text is repeated."""
    log = f'```\nTraceback (most recent call last):\n  File "a.py", line 1\n{FAILURE}\n```\n'
    assert reply_to(Issue(1, "It fails", log, True), INDEX).reply == ""
    body = log + report.as_paste(record(tmp_path), {}, "en")
    answer = reply_to(Issue(1, "It fails", body, True), INDEX)
    assert answer.article == "KB0002"
    assert "(the doctor's report names it, too)" in answer.reply
    assert "The tiles are too large." not in answer.reply
    alone = Issue(1, "It fails", body.removeprefix(log), True)
    names = "the doctor's report in it names KB0002 and KB0003"
    assert reply_to(alone, INDEX).silence == f"no article is about it; {names}"


def test_the_commands(tmp_path: Path, base: Base) -> None:
    """`diagnose --doctor` says the finding, `link` names it, and another file is refused."""
    base.article(literal="the tile is too large", matter='affected: [{"tiles": "<3"}]')
    base.article(literal="the tile is too large", number=2)
    log, file = tmp_path / "log", tmp_path / "doctor.json"
    log.write_text(f"{FAILURE}\n")
    file.write_text(json.dumps(json.loads(report.as_json(record(tmp_path / "machine")))))
    answer = base.kbtools("diagnose", str(log), "--doctor", str(file))
    assert answer.code == 0
    first, _, rest = answer.out.partition("KB0001  ")
    assert first.index("KB0002") > 0
    assert "the doctor    found its cause here: The tiles are too large." in first + rest
    assert "risk  KB0003  No library." in answer.out
    encoded = base.kbtools("diagnose", str(log), "--doctor", str(file), "--json").out
    assert json.loads(encoded)["versions"]["tiles"] == "2.4.0"
    reply = base.kbtools("link", "KB0001", "--format", "reply", "--doctor", str(file)).out
    assert "(the versions in the doctor's report are affected)" in reply
    reply = base.kbtools("link", "KB0002", "--format", "reply", "--doctor", str(file)).out
    assert "(the doctor found its cause on this machine)" in reply
    refusal = base.kbtools("diagnose", str(log), "--doctor", str(log))
    assert (refusal.code, "no report of the doctor's" in refusal.err) == (2, True)
    assert base.kbtools("link", "KB0001", "--doctor", str(file)).code == 2
    assert read_report(file.read_text(), "x").versions["sm"] == "9.0"
