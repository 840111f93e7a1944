"""A sound article is green; each claim of it that is made false turns the right snippet red."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest
from bases import Base, fence

SOUND = (
    fence("python repro id=r1", "raise ValueError('the failure')"),
    fence("python deadend id=d1", "print('tried')\nraise ValueError('the failure')"),
    fence("python fix id=f1", "assert 1 + 1 == 2"),
    fence("python practice id=p1", "assert 2 + 2 == 4"),
    fence("python control id=c1", "assert 3 + 3 == 6"),
)
AFFECTED = 'affected:\n  - {packaging: ">=1"}'
GREEN = {"r1": "reproduced", "d1": "no-help", "f1": "holds", "p1": "holds", "c1": "holds"}


class Lie(NamedTuple):
    """One change to the sound article, and what must come of it."""

    name: str
    old: str
    new: str
    red: dict[str, str]
    """Snippet → verdict, of those that are no longer as they were."""
    reason: str
    """Part of the reason of each."""


LIES = (
    Lie(
        "the range is moved",
        'packaging: ">=1"',
        'packaging: "<1"',
        {"r1": "regressed", "d1": "regressed"},
        "not affected: packaging <1; yet it fails as documented",
    ),
    Lie(
        "the repro passes",
        "raise ValueError('the failure')\n```\n\n```python deadend",
        "pass\n```\n\n```python deadend",
        {"r1": "not-reproduced"},
        "this toolchain is affected: packaging >=1; yet it passes",
    ),
    Lie(
        "the dead end helps",
        "print('tried')\nraise ValueError('the failure')",
        "print('tried')",
        {"d1": "not-reproduced"},
        "yet it passes",
    ),
    Lie(
        "the signature is another",
        'literal": "the failure',
        'literal": "another failure',
        {"r1": "other-failure", "d1": "other-failure"},
        "failed, but not as documented: ValueError: the failure",
    ),
    Lie("the fix fails", "1 + 1 == 2", "1 + 1 == 3", {"f1": "broken"}, "AssertionError"),
    Lie("the habit fails", "2 + 2 == 4", "2 + 2 == 5", {"p1": "broken"}, "AssertionError"),
    Lie("the control fails", "3 + 3 == 6", "3 + 3 == 7", {"c1": "broken"}, "AssertionError"),
    Lie(
        "the fix fails with the signature",
        "assert 1 + 1 == 2",
        "raise ValueError('the failure')",
        {"f1": "broken"},
        "ValueError: the failure",
    ),
    Lie("the repro is called a fix", "repro id=r1", "fix id=r1", {"r1": "broken"}, "the failure"),
    Lie(
        "the fix is called a repro", "fix id=f1", "repro id=f1", {"f1": "not-reproduced"}, "passes"
    ),
    Lie(
        "the control is called a repro",
        "control id=c1",
        "repro id=c1",
        {"c1": "not-reproduced"},
        "passes",
    ),
    Lie(
        "a fence claims another range",
        "repro id=r1",
        'repro id=r1 affected="packaging<1"',
        {"r1": "regressed"},
        "not affected: packaging <1",
    ),
    Lie(
        "a fence claims another failure",
        "repro id=r1",
        "repro id=r1 fails=KeyError",
        {"r1": "other-failure"},
        "not as documented: ValueError",
    ),
)


def test_a_sound_article_is_green(base: Base) -> None:
    """Every claim of a sound article is confirmed, and the exit code is 0."""
    base.article(*SOUND, matter=AFFECTED)
    finished = base.verify()
    assert (finished.code, finished.verdicts) == (0, {f"KB0001/{k}": v for k, v in GREEN.items()})


@pytest.mark.parametrize("lie", LIES, ids=lambda lie: lie.name)
def test_a_false_claim_is_red(base: Base, lie: Lie) -> None:
    """A claim made false turns its own snippets red, says why, and the exit code is 1."""
    file = base.article(*SOUND, matter=AFFECTED)
    text = (
        file.read_text("utf-8").replace("signatures: [{", "signatures:\n  - {").replace("}]", "}")
    )
    assert text.count(lie.old) == 1
    file.write_text(text.replace(lie.old, lie.new), "utf-8")
    finished = base.verify()
    assert (finished.code, finished.verdicts) == (
        1,
        {f"KB0001/{k}": v for k, v in (GREEN | lie.red).items()},
    )
    for snippet in lie.red:
        assert lie.reason in finished.result(snippet)["reason"]
        assert f"✗ {lie.red[snippet]} KB0001/{snippet}" in finished.out


@pytest.mark.parametrize(
    ("fails", "code", "verdict"),
    [
        ("timeout timeout=1", "import time\ntime.sleep(60)", "reproduced"),
        ("timeout timeout=9", "raise ValueError", "other-failure"),
        ("SIGSEGV", "import ctypes\nctypes.string_at(0)", "reproduced"),
        ("SIGSEGV", "import os\nos.abort()", "other-failure"),
        ("SIG40", "import os\nos.kill(os.getpid(), 40)", "reproduced"),
        ("exit:3", "import sys\nsys.exit(3)", "reproduced"),
        ("exit:3", "import sys\nsys.exit(4)", "other-failure"),
        ("exit:1", "import sys\nsys.exit('a message')", "reproduced"),
        ("AssertionError", "assert False", "reproduced"),
        ("AssertionError", "class Sub(AssertionError): pass\nraise Sub", "reproduced"),
        ("AssertionError", "raise ValueError('AssertionError')", "other-failure"),
        ("Exception", "1 / 0", "reproduced"),
        ("Exception", "raise KeyboardInterrupt", "other-failure"),
        ("SyntaxError", "def", "reproduced"),
        ("signature", "print('the failure')", "not-reproduced"),
        ("signature", "print('the failure', flush=True)\nraise SystemExit(0)", "other-failure"),
    ],
)
def test_how_a_repro_fails(base: Base, fails: str, code: str, verdict: str) -> None:
    """`fails=` names the one way to fail that counts; the failure of another kind is red."""
    base.article(fence(f"python repro id=r1 fails={fails}", code))
    finished = base.verify()
    assert finished.verdicts == {"KB0001/r1": verdict}, finished.out


def test_elsewhere_another_failure_is_none_of_ours(base: Base) -> None:
    """A repro that fails where not affected, with another text, has not regressed."""
    base.article(
        fence("python repro id=r1", "raise KeyError('something')"),
        matter='affected:\n  - {packaging: "<1"}',
    )
    assert base.verify().verdicts == {"KB0001/r1": "other-failure"}


def test_elsewhere_a_repro_passes(base: Base) -> None:
    """A repro that passes where the article says it is not affected is resolved."""
    base.article(
        fence("python repro id=r1", "assert True"),
        matter='affected:\n  - {packaging: "<1"}\n  - {python: "<3"}',
    )
    finished = base.verify()
    assert (finished.code, finished.verdicts) == (0, {"KB0001/r1": "resolved"})


def test_what_is_not_installed_is_skipped(base: Base) -> None:
    """Where the package of the claim is not installed nothing is run, and nothing concluded."""
    base.article(*SOUND, matter='affected:\n  - {no-such-package: ">=1"}')
    finished = base.verify()
    assert (finished.code, set(finished.verdicts.values())) == (3, {"skipped"})
    assert "no-such-package is not installed" in finished.out


def test_a_prerelease_on_the_boundary_is_unknown(base: Base, tmp_path: Path) -> None:
    """A development version of the very release that a range ends at may be on either side."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "v"], check=True)
    [packages] = (tmp_path / "v").glob("lib/python*/site-packages")
    (packages / "thing-2.8.0.dev1.dist-info").mkdir()
    (packages / "thing-2.8.0.dev1.dist-info" / "METADATA").write_text(
        "Name: thing\nVersion: 2.8.0.dev1"
    )
    base.article(*SOUND, matter='affected:\n  - {thing: ">=2.7,<2.8"}')
    finished = base.verify("--toolchain", str(tmp_path / "v" / "bin" / "python"))
    assert finished.result("r1")["verdict"] == finished.result("d1")["verdict"] == "unknown"
    assert "thing 2.8.0.dev1 is a pre-release on the boundary" in finished.result("r1")["reason"]
    assert finished.result("f1")["verdict"] == "holds", "a fix passes on either side"
    assert base.verify("--toolchain", str(tmp_path / "v/bin/python"), "--role", "repro").code == 3


def test_red_is_confirmed_in_a_fresh_interpreter(base: Base) -> None:
    """What fails in a fork and passes in an interpreter of its own does not contradict a claim."""
    not_in_a_fork = "assert 'zygote' not in open('/proc/self/cmdline').read()"
    base.article(fence("python fix id=f1", not_in_a_fork))
    finished = base.verify("--record")
    assert (finished.code, finished.verdicts) == (0, {"KB0001/f1": "holds"})
    assert [row["outcome"]["isolation"] for row in base.rows()] == ["spawn"], "the fork had failed"


def test_a_machine_that_is_unwell_contradicts_nothing(base: Base, tmp_path: Path) -> None:
    """Where even a known-good program fails, the verdict is inconclusive, and nothing is kept."""
    nvcc = tmp_path / "nvcc"
    nvcc.write_text('#!/bin/sh\n[ "$1" = --version ] && echo "release 13.0, V13.0.1"\n')
    nvcc.chmod(0o755)
    base.article(fence("cuda fix id=f1 requires=nvcc", "__global__ void kernel() {}"))
    finished = base.verify("--record", PATH=f"{tmp_path}:/usr/bin:/bin")
    assert (finished.code, finished.verdicts) == (3, {"KB0001/f1": "inconclusive"}), finished.out
    assert "this machine is unwell: a known-good control" in finished.out
    assert not (base.root / "evidence").exists()


def test_a_missing_tool_contradicts_nothing(base: Base) -> None:
    """A snippet whose tool cannot be started has shown nothing."""
    base.article(fence('python fix id=f1 tool="no-such-tool --flag"', "assert True"))
    finished = base.verify()
    assert (finished.code, finished.verdicts) == (3, {"KB0001/f1": "inconclusive"}), finished.out
    assert "no-such-tool" in finished.out
