"""What `kbtools verify` is told, and what it tells: selection, options, reports, exit codes."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from bases import Base, fence
from junitparser import JUnitXml

GOOD = fence("python fix id=f1", "assert True")
BAD = fence("python fix id=f2", "assert False, 'a\\x00b \\x1b[31m <&>'")
REPRO = fence("python repro id=r1", "raise ValueError('the failure')")


def test_json(base: Base) -> None:
    """`--json` writes schema, toolchain, one result a snippet, and how many of each verdict."""
    base.article(GOOD, BAD, REPRO)
    finished = base.verify()
    assert set(finished.json) == {
        "schema",
        "toolchain",
        "seconds",
        "unsandboxed",
        "results",
        "summary",
        "left_out",
    }
    assert finished.json["schema"] == 1
    assert "packaging" in finished.json["toolchain"]["packages"]
    assert finished.json["summary"] == {"holds": 1, "broken": 1, "reproduced": 1}
    row = finished.result("f1")
    assert {key: row[key] for key in ("article", "snippet", "role", "verdict", "cached")} == {
        "article": "KB0001",
        "snippet": "f1",
        "role": "fix",
        "verdict": "holds",
        "cached": False,
    }
    assert row["reason"] == "ran to its end"
    assert 0 < row["seconds"] < 20
    assert finished.json["seconds"] >= row["seconds"]


def test_json_on_standard_output(base: Base) -> None:
    """With `--json -` standard output is JSON and nothing else; people read standard error."""
    base.article(GOOD)
    finished = base.kbtools("verify", "--json", "-")
    assert json.loads(finished.out)["summary"] == {"holds": 1}
    assert "KB0001/f1" in finished.err


@pytest.mark.parametrize(
    "words",
    [("--json",), ("--json", "KB0001"), ("kb0001/f1", "--json", "-q"), ("--json", "--all")],
    ids=" ".join,
)
def test_json_without_a_file(words: tuple[str, ...], base: Base) -> None:
    """`--json` alone is standard output, as of other commands: an article is no file."""
    base.article(GOOD)
    finished = base.kbtools("verify", *words)
    assert json.loads(finished.out)["summary"] == {"holds": 1}
    assert not (base.root / "KB0001").exists()


def test_junit(base: Base, tmp_path: Path) -> None:
    """`--junit` is XML that a parser reads, whatever a snippet printed: a suite an article."""
    base.article(GOOD, BAD, REPRO)
    base.article(fence("python fix requires=gpus:9", "assert True"), number=2)
    base.kbtools("verify", "--junit", str(tmp_path / "junit.xml"))
    report = JUnitXml.fromfile(str(tmp_path / "junit.xml"))
    assert [suite.name for suite in report] == ["KB0001", "KB0002"]
    assert (report.tests, report.failures, report.skipped, report.errors) == (4, 1, 1, 0)


@pytest.mark.parametrize("option", ["--json", "--junit"])
def test_a_report_that_cannot_be_written(base: Base, option: str) -> None:
    """A report that cannot be written is a message and exit code 2, after the run was shown."""
    base.article(GOOD)
    finished = base.kbtools("verify", option, "/no/such/folder/file")
    assert finished.code == 2
    assert "cannot write /no/such/folder/file" in finished.err
    assert "1 holds" in finished.out


@pytest.mark.parametrize(
    ("words", "run"),
    [
        ((), ["KB0001/f1", "KB0001/r1", "KB0002/f1"]),
        (("KB0001",), ["KB0001/f1", "KB0001/r1"]),
        (("kb/KB0002-an-article.md",), ["KB0002/f1"]),
        (("KB0001/r1",), ["KB0001/r1"]),
        (("KB0001/r1", "KB0002"), ["KB0001/r1", "KB0002/f1"]),
        (("KB0001/r1", "KB0001/f1"), ["KB0001/f1", "KB0001/r1"]),
        (("--role", "repro"), ["KB0001/r1"]),
        (("--role", "repro", "--role", "fix", "KB0002"), ["KB0002/f1"]),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_selection(base: Base, words: tuple[str, ...], run: list[str]) -> None:
    """Ids, paths, snippets and roles choose what is run."""
    base.article(GOOD, REPRO)
    base.article(GOOD, number=2)
    finished = base.verify(*words)
    assert (finished.code, sorted(finished.verdicts)) == (0, run)


@pytest.mark.parametrize("word", ["KB0009", "KB0001/x9", "kb/none.md", "--role=cure", "-j0"])
def test_an_unknown_word_is_refused(base: Base, word: str) -> None:
    """What names nothing is exit code 2 and a message that holds the word; nothing is run."""
    base.article(GOOD)
    finished = base.verify(word)
    assert (finished.code, finished.json) == (2, {})
    assert word.partition("=")[2] or word[-1] in finished.err
    assert "Traceback" not in finished.err


def test_a_broken_article_does_not_stop_the_others(base: Base) -> None:
    """Articles that can be read are run; those that cannot are reported, and the exit code is 2."""
    base.article(GOOD)
    base.article(fence("python fxi id=f1", "assert True"), number=2)
    finished = base.verify()
    assert (finished.code, finished.verdicts) == (2, {"KB0001/f1": "holds"})
    assert "kb/KB0002-an-article.md:14: KB008 unknown role `fxi`" in finished.err
    assert "did you mean `fix`?" in finished.err


def test_nothing_to_run(base: Base) -> None:
    """Where nothing was run nothing is concluded: exit code 3."""
    base.article(GOOD)
    finished = base.verify("--role", "repro")
    assert (finished.code, finished.verdicts) == (3, {})
    assert "none to run" in finished.out


def test_fail_fast(base: Base) -> None:
    """`--fail-fast` ends the run at the first red verdict."""
    slow = [fence("python control", "import time\ntime.sleep(5)") for _ in range(8)]
    base.article(BAD, *slow)
    finished = base.verify("--fail-fast", "-j", "2", timeout=20)
    assert (finished.code, finished.verdicts) == (1, {"KB0001/f2": "broken"})
    assert base.running() == []


def test_quiet(base: Base) -> None:
    """`--quiet` leaves out what holds, and not what is red."""
    base.article(GOOD, BAD)
    finished = base.verify("--quiet")
    assert "KB0001/f1" not in finished.out
    assert "✗ broken KB0001/f2 (fix)  kb/KB0001-an-article.md:" in finished.out
    assert "2 snippets in" in finished.out


def test_timeout(base: Base) -> None:
    """`--timeout` is instead of what the fence says."""
    base.article(fence("python repro fails=timeout timeout=50", "import time\ntime.sleep(60)"))
    assert base.verify("--timeout", "0.5", timeout=20).code == 0


def test_what_held_is_remembered(base: Base) -> None:
    """A second run of unchanged code is remembered, and says so; `--all` runs it again."""
    base.article(GOOD, REPRO)
    assert "remembered" not in base.verify().out
    second = base.verify()
    assert second.result("f1")["cached"] is second.result("r1")["cached"] is True
    assert "(2 remembered; --all runs them again)" in second.out
    assert base.verify("--all").result("f1")["cached"] is False


def test_an_edit_forgets(base: Base) -> None:
    """Code that was edited is run again; prose around it, or another line, is not code."""
    base.article(GOOD, REPRO)
    base.verify()
    base.article("A new line of prose.\n", GOOD.replace("True", "1"), REPRO)
    finished = base.verify()
    assert finished.result("f1")["cached"] is False
    assert finished.result("r1")["cached"] is True


def test_a_claim_is_judged_anew(base: Base) -> None:
    """An edited claim changes the verdict of a remembered run; what is red is run again."""
    base.article(REPRO)
    base.verify()
    base.article(REPRO, matter='affected:\n  - {packaging: "<1"}')
    finished = base.verify()
    assert (finished.code, finished.verdicts) == (1, {"KB0001/r1": "regressed"})
    assert finished.result("r1")["cached"] is False


def test_a_shorter_time_is_not_remembered_for_a_longer(base: Base) -> None:
    """A run that a time limit ended says nothing about a longer limit."""
    sleeps = fence("python repro fails=timeout timeout=1", "import time\ntime.sleep(1.5)")
    base.article(sleeps)
    assert base.verify().verdicts == {"KB0001/repro1": "reproduced"}
    base.article(sleeps.replace("timeout=1", "timeout=20"))
    assert base.verify().verdicts == {"KB0001/repro1": "not-reproduced"}


def test_a_damaged_memory_is_no_obstacle(base: Base) -> None:
    """What this machine remembers is only ever a saving: when it cannot be read, all is run."""
    base.article(GOOD)
    base.verify()
    [file] = (base.root / ".kbtools" / "memory").glob("*.jsonl")
    file.write_text("no row\n")
    finished = base.verify()
    assert (finished.code, finished.verdicts) == (0, {"KB0001/f1": "holds"}), finished.err


def test_keep(base: Base) -> None:
    """`--keep` leaves the scratch folder of each run, and prints how to repeat it by hand."""
    base.article(
        fence("python fix id=f1", "open('note', 'w').write('by the run')"),
        fence("python repro id=r1", "raise ValueError('the failure')"),
        fence("python fix id=f2 toolchain=elsewhere", "assert True"),
    )
    (base.root / "toolchains.toml").write_text('[elsewhere]\npython = "3.11"\n', "utf-8")
    finished = base.verify("--keep")
    assert finished.code == 0
    folder = base.root / ".kbtools" / "kept"
    assert {file.name for file in folder.iterdir()} == {"KB0001-f1", "KB0001-r1"}
    assert (folder / "KB0001-f1/scratch/work/note").read_text("utf-8") == "by the run"
    block = finished.out.rstrip().rpartition("\n\n")[2].splitlines()
    assert block[0] == "kept: the scratch folder of each run; these commands repeat the runs:"
    fix, repro = (shlex.split(line) for line in block[1:])
    again = subprocess.run(repro, capture_output=True, text=True, check=False)
    assert again.returncode == 1 and "ValueError: the failure" in again.stderr
    assert subprocess.run(fix, check=False).returncode == 0
    assert list(base.temporary.iterdir()) == []


def test_keep_of_what_is_remembered(base: Base) -> None:
    """A snippet that is not run leaves nothing, and the report says which option runs it."""
    base.article(fence("python fix id=f1", "assert True"))
    assert base.verify().code == 0
    finished = base.verify("--keep", "-q")
    assert finished.code == 0
    assert finished.out.rstrip().endswith("kept: nothing, as no snippet was run; see --all")
    assert not (base.root / ".kbtools" / "kept").exists()


def test_a_folder_that_cannot_be_kept(base: Base) -> None:
    """Where a scratch folder cannot be kept, its verdict says so and the others stand."""
    base.article(fence("python fix id=f1", "assert True"), fence("python fix id=f2", "assert 1"))
    (base.root / ".kbtools" / "kept").mkdir(parents=True)
    (base.root / ".kbtools" / "kept" / "KB0001-f1").touch()
    finished = base.verify("--keep")
    assert finished.verdicts == {"KB0001/f1": "inconclusive", "KB0001/f2": "holds"}
    assert "could not be kept as" in finished.result("f1")["reason"]


@pytest.mark.parametrize(
    "words", [("--keep", "--on", "ray"), ("--no-sandbox", "--require-sandbox")], ids=" ".join
)
def test_exclusive_options(base: Base, words: tuple[str, ...]) -> None:
    """Two options of which only one may be given are refused, with both names."""
    finished = base.verify(*words)
    assert finished.code == 2
    assert f"{words[0]} or {words[1]}, not both" in finished.err


def test_another_python_is_suggested(base: Base) -> None:
    """Where packages are missing from the Python that runs kbtools, it says how to name another."""
    matter = 'affected: [{"nonesuch": ">=1"}]'
    base.article(fence("python repro id=r1", "raise ValueError('the failure')"), matter=matter)
    mine = base.root / "mine"
    mine.mkdir()
    (mine / "python").symlink_to(sys.executable)
    process = base.verify(PATH=f"{mine}:{os.environ['PATH']}")
    assert process.code == 3
    assert f'on {sys.executable}; to run on your Python: --toolchain "$(command' in process.err
    here = base.verify(PATH=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    assert "to run on your Python" not in here.err
    process = base.verify("--toolchain", sys.executable)
    assert process.code == 3
    assert "to run on your Python" not in process.err
