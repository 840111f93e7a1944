"""What annoyed people who tried kbtools, as far as no other file of tests holds it."""

from __future__ import annotations

import importlib.metadata
import io
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from bases import KBTOOLS, Base, fence
from click.testing import CliRunner
from examples import check

from kbtools import config, matching
from kbtools.cli import main
from kbtools.integrations.program_versions import interpreter_of, versions_beside, versions_of
from kbtools.matching import log_ends

ROOT = Path(__file__).parent.parent
FAILS = fence("python repro id=r1", 'raise OSError("the failure")')
FIX = fence("python fix id=f1", "assert True")


def test_a_name_that_no_toolchain_knows(base: Base) -> None:
    """A distribution that is called otherwise is reported, with its right name."""
    base.article(FAILS, FIX, matter='affected: [{pytorch: ">=2.8"}]')
    (base.root / "toolchains.toml").write_text(
        '[new]\npurpose = "torch"\npython = "3.11"\npackages = ["torch==2.8.0"]\n'
    )
    code, text = check(base.root)
    assert code == 1 and "KB310 `pytorch` in `affected`" in text
    assert "help: did you mean `torch`?" in text
    base.article(FAILS, FIX, matter='affected: [{torch: ">=2.8"}]')
    assert check(base.root)[0] == 0


def test_what_is_installed_is_known(base: Base) -> None:
    """A distribution beside kbtools needs no declaration, however its name is written."""
    assert importlib.metadata.version("markdown-it-py")
    base.article(FAILS, FIX, matter='affected: [{Markdown_It.py: ">=1"}]')
    assert check(base.root) == (0, "1 file checked, no problems\n")


def test_already_covered(base: Base) -> None:
    """`new` with a text that an article recognises names that article and writes nothing."""
    base.article(FAILS, FIX, literal="the disk of the node is full")
    title = "OSError: the disk of the node is full, it's 100 %"
    done = base.kbtools("new", title)
    assert (done.code, done.out) == (1, "")
    assert "KB0001  article 1\n  what helps  Do it right." in done.err
    assert len(list((base.root / "kb").iterdir())) == 1
    command = done.err.rstrip().rpartition("kbtools ")[2]
    assert command.startswith("new --anyway -- 'OSError: ")
    assert base.kbtools("new", "--anyway", "--", title).code == 0
    skeleton = sorted((base.root / "kb").iterdir())[-1].read_text("utf-8")
    assert "\n# needs: {" in skeleton and "\n# affected: [{" in skeleton
    assert len(list((base.root / "kb").iterdir())) == 2


def test_placeholders(base: Base) -> None:
    """`check` names every line of the skeleton that nobody has written, and no other."""
    base.kbtools("new", "OSError: something else")
    file = next((base.root / "kb").iterdir())
    lines = file.read_text("utf-8").splitlines()
    ends = (".", '."', "components: [component]", "signatures:")
    unwritten = [n for n, line in enumerate(lines, 1) if line.endswith(ends)]
    assert len(unwritten) == 7
    code, text = check(base.root)
    assert code == 0 and text.endswith("1 file checked, no problems; 7 lines to be written\n")
    named = [line.split(":")[1] for line in text.splitlines() if "still to be written" in line]
    assert list(map(int, named)) == unwritten
    file.write_text(file.read_text("utf-8").replace("To be written.", "A cause."), "utf-8")
    assert check(base.root)[1].count("still to be written") == 5
    assert "::warning file=kb/" in base.kbtools("check", "--github").out


def test_the_skeleton_of_a_notice(base: Base) -> None:
    """`new --notice` takes the next id of notices, and `check` names every receipt to be found."""
    for number in (1, 2):
        done = base.kbtools("new", "--notice", f"pandas: number {number} hangs")
        assert done.code == 0
        path = done.out.splitlines()[0]
        assert path == f"kb/notices/KBN000{number}-pandas-number-{number}-hangs.md"
        assert f"kbtools check {path}" in done.out
    text = base.kbtools("check", path).out
    lines = (base.root / path).read_text("utf-8").splitlines()
    unwritten = [n for n, line in enumerate(lines, 1) if re.search("owner/repo#123|{package", line)]
    assert len(unwritten) == 6
    named = [int(x.split(":")[1]) for x in text.splitlines() if "still to be written" in x]
    assert set(unwritten) < set(named)
    assert text.endswith(f"; {len(named)} lines to be written\n")
    assert "components: [component], stage: " in text and "unless they are right" in text
    problems = {line.split()[1] for line in text.splitlines() if line.startswith("kb/")}
    assert problems <= {"KB310", "still"}, "what is there is of the right form"


def test_a_notice_in_the_folder_of_articles(base: Base) -> None:
    """`check` says where it belongs, not that its id is none."""
    file = base.article(FAILS, FIX)
    text = file.read_text("utf-8").replace('id: "KB0001"', "id: KBN0001")
    file.rename(file.with_name("KBN0001-hangs.md")).write_text(text, "utf-8")
    assert "KB002 `KBN0001` is the id of a notice" in (printed := check(base.root)[1])
    assert "help: move the file to kb/notices/, or: an id looks like KB0002" in printed


def test_score_without_logs(base: Base) -> None:
    """It says which file is missing, and what is in it."""
    done = base.kbtools("score")
    assert done.code == 2 and "FileNotFoundError" not in done.err
    assert "expected.toml is missing; put logs beside expected.toml, which names" in done.err


def test_schema_of_a_notice(base: Base) -> None:
    """An editor completes the keys of notices, too."""
    form = json.loads(base.kbtools("schema", "--notice").out)["$defs"]["NoticeMatter"]
    assert {"looked-up", "remedies", "not"} <= set(form["properties"])
    assert "remedies" in form["required"]


def test_a_skeleton_is_not_recorded(base: Base) -> None:
    """Evidence of the failure that the skeleton makes would stay when the article is written."""
    base.kbtools("new", "OSError: something else")
    done = base.kbtools("verify", "--record")
    assert "not recorded: its article still has the skeleton's signature" in done.out + done.err
    assert not list((base.root / "evidence").glob("*.jsonl"))


def test_hollow_green(base: Base) -> None:
    """With --require-run an article of which nothing ever ran is red, though another one is green.

    What was recorded counts as run: a machine without a GPU need not run what another one has.
    """
    base.article(FAILS, FIX)
    base.article(
        fence("python repro id=r1 toolchain=elsewhere", 'raise OSError("the failure")'),
        number=2,
    )
    assert base.kbtools("verify").code == 0
    done = base.kbtools("verify", "--require-run")
    assert done.code == 1
    assert "  KB0002  skipped: " in done.err and "KB0001" not in done.err
    python = f'[elsewhere]\npurpose = "here"\npython = "{sys.executable}"\n'
    (base.root / "toolchains.toml").write_text(python)
    assert base.kbtools("verify", "--toolchain", "elsewhere", "--record").code == 0
    assert base.kbtools("verify", "--require-run").code == 0
    assert base.kbtools("verify", "KB0001", "--require-run").code == 0


def test_commands_that_record() -> None:
    """Who follows CONTRIBUTING.md commits the list of published addresses, too."""
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    assert "git add kb evidence published.txt" in text
    assert "kbtools link --publish" in text


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"], ids=repr)
@pytest.mark.parametrize("at", [3, 900, 4000, 5000])
def test_the_lines_of_a_long_log(
    at: int, end: str, base: Base, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A line has its number in the whole log, though the middle of the log is not read."""
    monkeypatch.setattr(log_ends, "ENDS", 16_384)  # of 60,000 bytes
    base.article(literal="OSError: the failure")
    lines = ["all is well"] * 5000
    lines[at - 1] = "OSError: the failure"
    ends = log_ends.read_ends(io.BytesIO(end.join(lines).encode()))
    assert ends.left_out and len(ends.text) == 2 * 16_384
    knowledge = matching.of_base(config.find(base.root))
    answer = log_ends.in_whole_log(matching.Matcher(knowledge).diagnose(ends.text), ends)
    assert answer.lines == 5000
    assert [match.line for match in answer.matches] == [at]


@pytest.mark.parametrize("middle", [0, 5000], ids=["in full", "without its middle"])
def test_a_progress_bar_ends_no_line_of_the_file(
    middle: int, base: Base, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A carriage return alone does not count: the number is the one that `grep -n` prints."""
    monkeypatch.setattr(log_ends, "ENDS", 16_384)
    base.article(literal="OSError: the failure")
    bar = "\r".join(f"loading {share} %" for share in range(100)) + "\n"
    log = bar + "all is well\n" * middle + bar + "OSError: the failure\nthe end\n"
    ends = log_ends.read_ends(io.BytesIO(log.encode()))
    assert bool(ends.left_out) is bool(middle)
    knowledge = matching.of_base(config.find(base.root))
    answer = log_ends.in_whole_log(matching.Matcher(knowledge).diagnose(ends.text), ends)
    number = log[: log.index("OSError")].count("\n") + 1
    assert [match.line for match in answer.matches] == [number]
    assert answer.first is not None and answer.first.line == number
    assert answer.lines == log.count("\n")


def run(base: Base, *command: str) -> subprocess.CompletedProcess[str]:
    """Runs a program by `kbtools run` in the folder of a base."""
    words = [*KBTOOLS, "run", "--", *command]
    return subprocess.run(words, cwd=base.root, capture_output=True, text=True, timeout=60)


def test_a_program_has_the_versions_of_its_interpreter(base: Base, tmp_path: Path) -> None:
    """`kbtools run` does not recommend an upgrade that is made already."""
    base.article(literal="OSError: the failure", matter='affected: [{packaging: "<1"}]')
    script = tmp_path / "program"
    script.write_text(f"#!{sys.executable}\nraise OSError('the failure')\n")
    script.chmod(0o755)
    for command in ((str(script),), (sys.executable, str(script))):
        done = run(base, *command)
        assert "not sure: the versions in the log are not affected (packaging <1 is" in done.stderr
    assert "not sure" not in run(base, "sh", "-c", f"{script}").stderr, "nobody knows its versions"


def test_the_interpreter_of_a_program(tmp_path: Path) -> None:
    """A program is asked for versions only if it is Python, or its first line names one."""
    program = tmp_path / "program"
    for first, is_python in (
        (f"#!{sys.executable} -u", True),
        ("#!/usr/bin/env python3", True),
        ("#!/bin/sh", False),
        ("#!/usr/bin/env 'nothing", False),
        ("", False),
    ):
        program.write_text(f"{first}\n")
        program.chmod(0o755)
        assert (interpreter_of(str(program)) is not None) is is_python, first
    assert versions_of(["/nowhere/python3"], ["packaging"]) == {}
    version = importlib.metadata.version("packaging")
    answer = versions_of([sys.executable], ["nobody-has-this", "packaging"])
    assert answer.keys() == {"python", "packaging"}
    assert answer["packaging"] == version


def test_a_traceback_names_its_packages(tmp_path: Path) -> None:
    """Where a shell script ran it, the packages beside those of the traceback are looked at."""
    folder = tmp_path / "lib" / "site-packages"
    information = folder / "Tile_Kit-1.2.dist-info" / "METADATA"
    information.parent.mkdir(parents=True)
    information.write_text("Metadata-Version: 2.1\nName: Tile_Kit\nVersion: 1.2\n")
    output = f'[rank0]:   File "{folder}/tile_kit/a.py", line 3, in f\n'
    assert versions_beside(output, ["tile-kit", "packaging"]) == {"tile-kit": "1.2"}
    assert versions_beside("KeyError: 'x'", ["tile-kit"]) == {}


def test_a_new_base_says_which_packages_count(tmp_path: Path) -> None:
    """What `kbtools init` writes about `[toolchain]` is valid once its signs of a comment go."""
    assert (
        CliRunner().invoke(main, ["init", str(tmp_path), "--name", "B", "--prefix", "B"]).exit_code
        == 0
    )
    assert check(tmp_path)[0] == 0
    file = tmp_path / "kbtools.toml"
    text = file.read_text("utf-8")
    for line in ("[toolchain]", "packages = [", "headline = ["):
        assert f"# {line}" in text
        text = text.replace(f"# {line}", line)
    file.write_text(text, "utf-8")
    assert config.find(tmp_path).toolchain.packages == ("some-package", "some-package-*")


def test_the_command_that_repeats_a_red_verdict(base: Base) -> None:
    """It names the toolchain: without it another interpreter would be asked, and may be green."""
    base.article(FAILS, fence("python fix id=f1", "raise OSError('it is no fix')"))
    (base.root / "toolchains.toml").write_text(
        f'[elsewhere]\npurpose = "here"\npython = "{sys.executable}"\n'
    )
    done = base.kbtools("verify", "KB0001/f1", "--toolchain", "elsewhere")
    command = "kbtools verify KB0001/f1 --all --toolchain elsewhere"
    assert (done.code, [line for line in done.out.splitlines() if "alone" in line]) == (
        1,
        [f"  alone     {command}"],
    )
    assert "\n1 snippet in " in done.out


def test_the_command_that_repeats_a_red_verdict_elsewhere(base: Base) -> None:
    """An interpreter that was named by its path is in the command, too, but not kbtools' own."""
    base.article(FAILS, fence("python fix id=f1", "raise OSError('it is no fix')"))
    other = str(Path(sys.executable).resolve())  # the Python of this environment
    named = f" --toolchain {other}" if other != sys.executable else ""
    for python, ending in ((other, named), (sys.executable, "")):
        done = base.kbtools("verify", "KB0001/f1", "--all", "--toolchain", python)
        assert done.code == 1
        assert f"  alone     kbtools verify KB0001/f1 --all{ending}\n" in done.out


@pytest.mark.parametrize("end", ["", "\n"], ids=repr)
def test_a_log_of_one_line(end: str, base: Base, tmp_path: Path) -> None:
    """One line is a line, whether an end of line follows it or not."""
    (tmp_path / "log").write_text(f"all is well{end}")
    done = base.kbtools("diagnose", str(tmp_path / "log"))
    assert (done.code, done.out.startswith("none: nothing in this line is")) == (3, True)
