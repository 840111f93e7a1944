"""`pytest kb/`: snippets as items, in a pytest of its own."""

from __future__ import annotations

import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

from bases import Base, fence

FAILS = fence("python repro id=r1", 'raise RuntimeError("the failure")')
SOUND = fence("python fix id=f1", "assert True")
BROKEN = fence("python fix id=f2", "x = 1\nassert x == 2")
GPU = fence("python fix id=f3 requires=gpus:9", "assert True")


def pytest_in(base: Base, *words: str) -> tuple[int, str]:
    """Runs pytest on the articles; the exit code and what it printed."""
    process = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "kb", *words],
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
    assert "KB0001/r1[repro] PASSED" in printed


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
        "KB0001/f1[fix]",
        "KB0001/f2[fix]",
        "KB0001/r1[repro]",
    ]


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
