"""`pytest kb/`: snippets as items, in a pytest of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

from bases import Base, fence

FAILS = fence("python repro id=r1", 'raise RuntimeError("the failure")')
SOUND = fence("python fix id=f1", "assert True")
BROKEN = fence("python fix id=f2", "x = 1\nassert x == 2")
GPU = fence("python fix id=f3 requires=gpus:9", "assert True")


PYTHON = os.environ.get("PYTEST_OF", sys.executable)
"""An interpreter with another release of pytest: all that is tested here holds for it, too."""


def pytest_in(base: Base, *words: str, plugins: str = "no:cacheprovider") -> tuple[int, str]:
    """Runs pytest on the articles; the exit code and what it printed."""
    process = subprocess.run(
        [PYTHON, "-m", "pytest", "-p", plugins, "kb", *words],
        cwd=base.root,
        env=base.environment(),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return process.returncode, process.stdout + process.stderr


def test_snippets_are_items(base: Base) -> None:
    """Green passes, grey is skipped with its reason, and a failure that is documented is green."""
    base.article(FAILS, SOUND, GPU)
    code, printed = pytest_in(base, "-rs", "-v")
    assert code == 0
    assert "2 passed, 1 skipped" in printed
    assert "skipped: needs 9 GPUs" in printed
    assert "KB0001/r1-repro PASSED" in printed


def test_a_red_snippet_shows_the_line(base: Base) -> None:
    """A broken fix fails with its claim, and names the line in the Markdown."""
    file = base.article(BROKEN)
    line = file.read_text("utf-8").splitlines().index("assert x == 2") + 1
    code, printed = pytest_in(base)
    assert code == 1
    assert "✗ broken KB0001/f2 (fix)" in printed
    assert f'File "kb/{file.name}", line {line}' in printed


def test_selection_and_reports(base: Base, tmp_path: Path) -> None:
    """`-k`, `-x`, `--junitxml` and xdist work as with any other test."""
    base.article(FAILS, BROKEN, SOUND)
    assert "1 passed, 2 deselected" in pytest_in(base, "-k", "r1")[1]
    assert "1 failed, 1 passed" in pytest_in(base, "-x")[1]
    report = tmp_path / "report.xml"
    code, printed = pytest_in(base, "-n", "2", f"--junitxml={report}")
    assert (code, "1 failed, 2 passed" in printed) == (1, True)
    cases = ET.parse(report).getroot().findall(".//testcase")
    assert sorted(case.attrib["name"] for case in cases) == [
        "KB0001/f1-fix",
        "KB0001/f2-fix",
        "KB0001/r1-repro",
    ]


def test_roles_are_markers(base: Base) -> None:
    """`-m` selects by role, with `--strict-markers` too; outside of a base there are no markers."""
    base.article(FAILS, BROKEN, SOUND)
    assert "1 passed, 2 deselected" in pytest_in(base, "-m", "repro", "--strict-markers")[1]
    assert "1 failed, 1 passed, 1 deselected" in pytest_in(base, "-m", "fix or practice")[1]
    assert (
        "@pytest.mark.deadend: snippets of kbtools with the role deadend"
        in (pytest_in(base, "--markers")[1])
    )
    (base.root / "kbtools.toml").unlink()
    assert "deadend" not in pytest_in(base, "--markers")[1]


def test_what_failed_last_is_run_again(base: Base) -> None:
    """`--lf` runs what failed and nothing else; `--ff` runs it first; then all is well again."""
    file = base.article(SOUND, BROKEN, FAILS)
    base.article(FAILS, number=2)
    assert "1 failed, 3 passed" in pytest_in(base, plugins="cacheprovider")[1]
    again = pytest_in(base, "--lf", "-v", plugins="cacheprovider")[1]
    assert "rerun previous 1 failure" in again
    assert "1 failed" in again.splitlines()[-1]
    assert "passed" not in again.splitlines()[-1]
    first = pytest_in(base, "--ff", "-v", plugins="cacheprovider")[1]
    assert "rerun previous 1 failure first" in first
    assert next(line.split()[1] for line in first.splitlines() if "%]" in line) == "FAILED"
    text = file.read_text("utf-8").replace("assert x == 2", "assert x == 1")
    file.write_text(text, "utf-8")
    assert "1 passed" in pytest_in(base, "--lf", plugins="cacheprovider")[1]
    nothing = pytest_in(base, "--lf", plugins="cacheprovider")[1]
    assert "no previously failed tests, not deselecting items" in nothing


def test_toolchains(base: Base) -> None:
    """`--toolchain` takes names and paths, several too; each item says which it is run on."""
    base.article(FAILS, SOUND)
    (base.root / "toolchains.toml").write_text(f'[here]\npython = "{sys.executable}"\n')
    code, printed = pytest_in(base, "--toolchain", f"here,{sys.executable}", "-v", "-m", "fix")
    assert (code, "2 passed, 2 deselected" in printed) == (0, True)
    assert f"KB0001/f1-fix@{sys.executable} PASSED" in printed
    assert "KB0001/f1-fix@here PASSED" in printed


def test_a_toolchain_that_is_not_here(base: Base) -> None:
    """A name that means nothing, or a toolchain that is not built, is an error with a next step."""
    base.article(SOUND)
    base.article(SOUND, number=2)
    (base.root / "toolchains.toml").write_text('[built]\npython = "3.11"\npackages = ["six"]\n')
    code, printed = pytest_in(base, "--toolchain", "other")
    assert (code, printed.count("no toolchain `other`")) == (4, 1)
    code, printed = pytest_in(base, "--toolchain", "built")
    assert (code, "build it: kbtools toolchain sync built" in printed) == (4, True)


def test_an_article_that_cannot_be_read_is_an_error(base: Base) -> None:
    """A page with a problem is an error of the collection, with the text of `kbtools check`."""
    base.article(fence("python reproo id=r1", "assert True"))
    code, printed = pytest_in(base)
    assert code == 2
    assert "KB008 unknown role `reproo`" in printed
    assert "did you mean `repro`?" in printed


def test_markdown_of_no_article_is_not_collected(base: Base) -> None:
    """Markdown outside the folder of the articles is not collected."""
    base.article(SOUND)
    (base.root / "README.md").write_text("# no article\n", "utf-8")
    assert "1 passed" in pytest_in(base, "README.md")[1] or pytest_in(base)[0] == 0
    assert "README" not in pytest_in(base, "-v")[1]


def test_no_process_outlives_pytest(base: Base) -> None:
    """When pytest ends, so do the zygote and every file it made."""
    base.article(SOUND, FAILS)
    assert pytest_in(base)[0] == 0
    assert list(base.temporary.iterdir()) == []
