"""A night in which releases came: built, run, compared with the tables, and told in one issue.

Both releases of sqlparse are real: 0.5.0 raises an error of its own where 0.4.3 meets the limit of
Python's recursion, and has no `sqlparse.keywords.is_keyword` any more.
"""

from __future__ import annotations

import datetime
import json
import subprocess
import sys
from pathlib import Path

import pytest
from bases import Base, fence, git
from packaging.version import Version
from test_workflows import Checkout
from wheels import Shelf

from kbtools.tables.changes import TableChange, changes_between
from kbtools.tables.model import Origin, Release, Statement
from kbtools.toolchains.declared import Declaration
from kbtools.toolchains.radar import NewRelease, new_releases

DAY = datetime.date(2026, 1, 31)
DEEP = """
    import sys
    import sqlparse
    import sqlparse.exceptions

    error_of_its_own = getattr(sqlparse.exceptions, "SQLParseError", ValueError)
    sys.setrecursionlimit(100)
    try:
        sqlparse.parse("[" * 150 + "]" * 150)
    except {caught} as error:
        print(error)
"""
TABLES = """
requires = ["sqlparse"]

[distributions.sqlparse]
platforms = ["any"]
[distributions.server]
platforms = ["any"]

[programs.sqlparse-names]
script = "tables/names.py"
toolchains = ["sqlparse-0.4"]
"""
NAMES = """
import json
import sqlparse
import sqlparse.keywords

names = sorted(name for name in vars(sqlparse.keywords) if not name.startswith("_"))
row = {"about": {"sqlparse": "==" + sqlparse.__version__}, "facts": {"keywords": names}}
print(json.dumps(row))
"""
NOTICE = """---
id: KBN0001
title: "a wrong statement"
summary: "Wait for a release."
components: [example]
stage: runtime
severity: wrong-result
basis: reported
looked-up: 2023-01-31
affected: [{sqlparse: ">=0.4"}]
bounds:
  - {bound: "sqlparse>=0.4", receipt: "owner/repo#12"}
remedies:
  - {do: "none is known.", receipt: "owner/repo#12"}
threads: [owner/repo#12]
---

Of sqlparse [owner/repo#12].
"""
GH = """#!/bin/sh
echo "$@" >> "$(dirname "$0")/calls"
case "$1 $2" in
"issue list") cat "$(dirname "$0")/open" ;;
"issue create") cat > "$(dirname "$0")/body"; echo https://example.org/issues/7 ;;
esac
"""


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shelf:
    """An index with the older release of sqlparse, and a server that pins it."""
    downloads = tmp_path / "downloads"
    for version in ("0.4.3", "0.5.0"):
        words = ["pip", "download", "-q", "--no-deps", "-d", str(downloads), f"sqlparse=={version}"]
        done = subprocess.run([sys.executable, "-m", *words], capture_output=True, text=True)
        if done.returncode:
            pytest.skip(f"no package index with sqlparse here: {done.stderr.strip()[-200:]}")
    for name in ("PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS"):
        monkeypatch.delenv(name, raising=False)
    shelf = Shelf(tmp_path / "index")
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_INDEX_URL", shelf.url)
    shelf.wheel("server", "1.0", "sqlparse==0.4.3")
    offer(shelf, "sqlparse", downloads / "sqlparse-0.4.3-py3-none-any.whl")
    return shelf


def offer(shelf: Shelf, project: str, *files: Path) -> None:
    """Puts files on the page of a project."""
    folder = shelf.root / project
    folder.mkdir(parents=True, exist_ok=True)
    for file in files:
        (folder / file.name).write_bytes(file.read_bytes())
    names = sorted(file.name for file in folder.glob("*.whl"))
    (folder / "index.html").write_text("".join(f'<a href="{name}">{name}</a>' for name in names))


@pytest.fixture
def night(base: Base, shelf: Shelf, tmp_path: Path) -> Checkout:
    """A knowledge base about sqlparse, as it stood before the release."""
    checkout = Checkout(base, tmp_path)
    for file in (base.root / "kb").glob("*.md"):
        file.unlink()
    config = base.root / "kbtools.toml"
    words = '\n[toolchain]\npackages = ["sqlparse"]\nheadline = ["sqlparse"]\n'
    config.write_text(config.read_text("utf-8") + words, "utf-8")
    base.article(
        fence("python repro id=r1", DEEP.format(caught="error_of_its_own")),
        literal="maximum recursion depth exceeded",
        matter='affected: [{"sqlparse": ">=0.4"}]',
    )
    base.article(
        fence("python repro id=r1", DEEP.format(caught="RecursionError")),
        number=2,
        literal="SQLParseError: Maximum recursion depth exceeded",
        matter='affected: [{"sqlparse": "<0.4"}]',
    )
    (base.root / "kb" / "notices").mkdir()
    (base.root / "kb" / "notices" / "KBN0001-a-wrong-statement.md").write_text(NOTICE, "utf-8")
    (base.root / "tables.toml").write_text(TABLES, "utf-8")
    (base.root / "tables").mkdir()
    (base.root / "tables" / "names.py").write_text(NAMES, "utf-8")
    (base.root / "toolchains.toml").write_text(
        '["sqlparse-0.4"]\npython = "3.11"\npackages = ["sqlparse==0.4.3"]\n', "utf-8"
    )
    with (base.root / ".gitignore").open("a") as ignored:
        ignored.write("/.kbtools/\n/build/\n")
    for command in (
        ("toolchain", "sync", "sqlparse-0.4"),
        ("tables", "sync"),
        ("tables", "sync", "sqlparse-names"),
        ("verify", "--toolchain", "sqlparse-0.4", "--all", "--record"),
    ):
        done = base.kbtools(*command, timeout=120)
        assert done.code == 0, f"{command}: {done.out} {done.err}"
    checkout.commit("before")
    git(base, "push", "-q", "origin", "HEAD:main")
    (checkout.bin / "gh").write_text(GH)
    (checkout.bin / "gh").chmod(0o755)
    (checkout.bin / "open").write_text("[]")
    return checkout


def test_a_night_with_a_release(night: Checkout, shelf: Shelf, tmp_path: Path) -> None:
    """Nothing before it; then an article fixed, one back, a name gone, a pin moved, a notice."""
    base = night.base
    assert base.kbtools("radar", "releases").out == ""
    offer(shelf, "sqlparse", tmp_path / "downloads" / "sqlparse-0.5.0-py3-none-any.whl")
    shelf.wheel("server", "1.1", "sqlparse==0.5.0")
    assert base.kbtools("radar", "releases").out == "sqlparse-0.4@sqlparse==0.5.0\n"
    done = night.run("radar.sh")
    if "sandbox" in done.stderr and "KB0001" not in done.stdout:
        pytest.skip("snippets cannot be shut in here")
    assert done.returncode == 0, done.stdout + done.stderr
    assert base.kbtools("radar", "releases").out == "", "a release is tried once"
    done = night.run("releases.sh", ISSUES="yes")
    assert done.returncode == 0, done.stdout + done.stderr
    text = done.stdout
    assert "## Articles ran for the first time on\n\n- `` sqlparse 0.5.0 ``" in text
    fixed, back = text.partition("## Fixed")[2].partition("## Back")[::2]
    assert "KB0001/r1 (repro): not run → not-reproduced on " in fixed.partition("##")[0]
    assert "KB0002/r1 (repro): not run → regressed on " in back.partition("##")[0]
    assert "sqlparse 0.5.0 (before 0.4.3): keywords: FLAGS, is_keyword" in text
    assert "server 1.1 (before 1.0): sqlparse ==0.4.3 → ==0.5.0" in text
    assert "sqlparse 0.5.0 (before 0.4.3): python >=3.5 → >=3.8" in text
    assert "KBN0001: sqlparse has 0.4.3, 0.5.0 since 2023-01-31" in text
    assert "opened https://example.org/issues/7" in done.stderr
    body = (night.bin / "body").read_text()
    assert body.startswith("<!-- kbtools:releases -->\n")
    assert "Next: declare the release" in body
    issue = json.dumps([{"number": 7, "body": body.replace("\n", "\r\n")}])
    (night.bin / "open").write_text(issue)
    assert "#7 says so already" in night.run("releases.sh", ISSUES="yes").stderr
    assert night.run("releases.sh", RECORD="main", AUTHOR="a", EMAIL="a@b").returncode == 0
    pushed = git(base, "--git-dir", str(night.origin), "show", "--stat", "--format=", "main")
    assert "evidence/KB0001.jsonl" in pushed
    assert "tables/server.jsonl" in pushed
    assert base.kbtools("radar", "report", "--since", "HEAD").out == "nothing changed\n"


def test_a_release_that_cannot_be_built(night: Checkout, shelf: Shelf) -> None:
    """The night goes on, and the issue has the reason."""
    shelf.wheel("sqlparse", "0.6.0", "no-such-package==1")
    offer(shelf, "sqlparse")
    done = night.run("radar.sh")
    assert done.returncode == 0, done.stdout + done.stderr
    text = night.run("releases.sh").stdout
    assert "## Could not be built\n\n- `` sqlparse-0.4@sqlparse==0.6.0 ``:" in text
    assert "## Fixed" not in text


def test_which_release_is_new() -> None:
    """Newer than every pin; in the plainest toolchain that has the newest; ranges are no pins."""
    declarations = {
        "old": Declaration("3.11", ("engine==1.0",)),
        "server": Declaration("3.11", ("engine==2.0", "server==1.0")),
        "plain": Declaration("3.11", ("Engine==2.0",)),
        "range": Declaration("3.11", ("engine>=1", "other==1.*")),
    }
    days = {"engine": {Version("2.0"): DAY, Version("3.1"): None}, "other": {}}
    listed = list(new_releases(declarations, ("engine", "other", "none"), lambda n: days[n]))
    assert listed == [NewRelease("engine", "3.1", "2.0", "plain@engine==3.1")]
    assert not [*new_releases(declarations, ("engine",), lambda _: {Version("2.0"): DAY})]


def release(version: str, platform: str, *requires: str, **facts: tuple[str, ...]) -> Release:
    """A row of a distribution."""
    source = Origin(f"engine-{version}-{platform}.whl")
    return Release(
        "engine", version, platform, ("cp312-cp312",), source, DAY, requires=requires, facts=facts
    )


def test_what_a_release_changed() -> None:
    """Pins of no extra, values of facts, on each platform against the release before it there."""
    old = release("1.0", "linux", "a==1", 'b==1; extra == "x"', cuda=("12",), sm=("70", "80"))
    new = release("2.0", "linux", "a==2", "c>=1", cuda=("13",), sm=("80", "90"))
    windows = release("2.0", "win", "a==2")
    changes = changes_between({"engine": [old]}, {"engine": [windows, new, old]})
    assert [(c.kind, c.before, c.text) for c in changes] == [
        ("released", "1.0", ""),
        ("pin", "1.0", "a ==1 → ==2"),
        ("pin", "1.0", "c not required → >=1"),
        ("pin", "1.0", "cuda 12 → 13"),
        ("gone", "1.0", "sm: 70"),
        ("new", "1.0", "sm: 90"),
    ]
    assert changes_between({}, {"engine": [old, new]}) == (), "the table is new, not its releases"
    assert changes_between({"engine": [old]}, {"engine": [old]}) == ()


def test_what_a_program_says_of_a_release() -> None:
    """A statement is compared with that about the release before it, all else being equal."""

    def statement(version: str, sm: str, works: bool) -> Statement:
        about = {"engine": f"=={version}", "sm": f"=={sm}"}
        return Statement(about, Origin("script"), DAY, "measured", works=works, note="no target")

    old = [statement("1.0", "7.0", True), statement("1.0", "9.0", True)]
    new = [statement("2.0", "7.0", False), statement("2.0", "9.0", True)]
    [change] = changes_between({"targets": old}, {"targets": [*new, *old]})
    text = "no longer works (sm 7.0): no target"
    assert change == TableChange("stopped", "engine", "2.0", "1.0", text)
