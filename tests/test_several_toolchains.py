"""`kbtools verify --toolchain A,B`: one zygote each, one table out."""

from __future__ import annotations

import json
import shutil
import sys
import venv
from pathlib import Path

import pytest
from bases import Base, fence

FAILS = fence("python repro id=r1", 'raise RuntimeError("the failure")')


@pytest.fixture
def two(base: Base, tmp_path: Path) -> Base:
    """A knowledge base with two toolchains: this Python, and an empty environment of it."""
    venv.create(tmp_path / "empty", with_pip=False)
    (base.root / "toolchains.toml").write_text(
        f'[here]\npython = "{sys.executable}"\n[empty]\npython = "{tmp_path}/empty/bin/python"\n',
        "utf-8",
    )
    return base


def test_the_table(two: Base) -> None:
    """Snippets stand in rows, toolchains in columns; what cannot run somewhere says why."""
    two.article(FAILS)
    two.article(
        fence("python repro id=r1", "import msgspec\nassert False, 'the failure'"),
        number=2,
        matter="affected: [{msgspec: '>=0'}]",
    )
    finished = two.verify("--toolchain", "here,empty")
    assert finished.code == 0
    assert [run["name"] for run in finished.json["runs"]] == ["here", "empty"]
    assert [run["summary"] for run in finished.json["runs"]] == [
        {"reproduced": 2},
        {"reproduced": 1, "skipped": 1},
    ]
    assert "· 1 skipped: msgspec is not installed\n" in finished.out
    table = finished.out.rpartition("\n\n")[2].splitlines()
    assert table[0].split() == ["here", "empty"]
    assert table[2].split() == ["KB0002/r1", "✓", "reproduced", "·", "skipped"]


def test_all_takes_what_is_built(two: Base) -> None:
    """`all` takes the toolchains that are built, and names those that are not."""
    with (two.root / "toolchains.toml").open("a", encoding="utf-8") as file:
        file.write('[absent]\npython = "3.11"\npackages = ["no-such-thing==1"]\n')
    two.article(FAILS)
    finished = two.verify("--toolchain", "all", KBTOOLS_TOOLCHAINS=str(two.temporary))
    assert finished.code == 0
    assert [run["name"] for run in finished.json["runs"]] == ["here", "empty"]
    assert "kbtools toolchain sync absent" in finished.err


def test_the_option_may_be_repeated(two: Base) -> None:
    """Each `--toolchain` adds to those before it."""
    two.article(FAILS)
    finished = two.verify("--toolchain", "here", "--toolchain", "empty")
    assert [run["name"] for run in finished.json["runs"]] == ["here", "empty"]


def test_folders_are_kept_for_each_toolchain(two: Base) -> None:
    """`--keep` leaves the runs of each toolchain in a folder of its name."""
    two.article(FAILS)
    finished = two.verify("--toolchain", "here,empty", "--keep", "-q")
    folders = [f".kbtools/kept/{name}/KB0001-r1" for name in ("empty", "here")]
    for folder, line in zip(folders, finished.out.splitlines()[-2:], strict=True):
        assert line == f"  sh {two.root}/{folder}/run.sh"


def test_a_snippet_for_a_single_toolchain(two: Base) -> None:
    """A fence with `toolchain=` runs there and nowhere else, and its evidence counts."""
    two.article(fence("python repro id=r1 toolchain=empty", 'raise RuntimeError("the failure")'))
    finished = two.verify("--toolchain", "here,empty", "--record")
    assert [run["summary"] for run in finished.json["runs"]] == [{"skipped": 1}, {"reproduced": 1}]
    assert "KB0001  reproduced" in two.kbtools("list").out


def test_a_toolchain_for_a_single_article(two: Base) -> None:
    """A toolchain with `articles` runs those articles only, and any other that is named."""
    with (two.root / "toolchains.toml").open("a", encoding="utf-8") as file:
        file.write('articles = ["KB0002"]\n')  # of the toolchain `empty`
    two.article(FAILS)
    two.article(FAILS, number=2)
    runs = two.verify("--toolchain", "here,empty").json["runs"]
    assert [run["summary"] for run in runs] == [{"reproduced": 2}, {"reproduced": 1}]
    assert [result["article"] for result in runs[1]["results"]] == ["KB0002"]
    assert two.verify("KB0001", "--toolchain", "empty").json["summary"] == {"reproduced": 1}


def test_red_on_any_toolchain(two: Base) -> None:
    """One contradiction on one of the toolchains makes the exit code 1."""
    two.article(fence("python fix id=f1", "import msgspec"))
    finished = two.verify("--toolchain", "here,empty")
    assert finished.code == 1
    assert [run["summary"] for run in finished.json["runs"]] == [{"holds": 1}, {"broken": 1}]
    assert two.verify("--toolchain", "here").code == 0


def test_an_unknown_toolchain_is_refused(two: Base) -> None:
    """A name that is no toolchain is one message and exit code 2, before anything is run."""
    two.article(FAILS)
    finished = two.verify("--toolchain", "here,nowhere")
    assert finished.code == 2
    assert "no toolchain `nowhere`" in finished.err
    assert finished.json == {}


def test_junit_has_a_suite_for_each(two: Base, tmp_path: Path) -> None:
    """In JUnit every article has a suite on each toolchain."""
    two.article(FAILS)
    file = tmp_path / "report.xml"
    assert two.verify("--toolchain", "here,empty", "--junit", str(file)).code == 0
    assert "KB0001 on here" in file.read_text("utf-8")
    assert "KB0001 on empty" in file.read_text("utf-8")


def test_an_interpreter_by_its_path(two: Base) -> None:
    """A toolchain may be the path of any interpreter."""
    python = shutil.which("python3") or sys.executable
    two.article(FAILS)
    finished = two.kbtools("env", "--toolchain", python, "--json")
    assert json.loads(finished.out)["python"].startswith("3.")
    assert two.verify("--toolchain", python).code == 0
