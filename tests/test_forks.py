"""A fork of the process that the tests run commands in is as a fresh `kbtools`."""

from __future__ import annotations

import subprocess

import pytest
from bases import Base, fence
from forks import parent

SEES = "import os\n\nassert os.environ['NAME'] == 'value', 'the failure'"


@pytest.mark.parametrize(
    "words",
    [
        ("check",),
        ("list",),
        ("explain", "KB0001"),
        ("explain", "KB0009"),
        ("no-such-command",),
        ("--help",),
    ],
    ids=" ".join,
)
def test_a_fork_is_as_a_fresh_process(base: Base, words: tuple[str, ...]) -> None:
    """Exit code, output and errors of a command are the same."""
    base.article(fence("python fix", "x = 1"))
    fresh = base.start(*words)
    out, err = fresh.communicate(timeout=60)
    assert parent().can(base.environment())
    fork = base.kbtools(*words)
    assert (fork.code, fork.out, fork.err) == (fresh.returncode, out, err)
    assert out + err


def test_variables(base: Base) -> None:
    """A fork has the variables that it is given, and no other; what a start reads is no fork's."""
    base.root.joinpath("kbtools.toml").write_text(
        '[knowledge-base]\nname = "a test"\nprefix = "KB"\n\n[run]\nenvironment = ["NAME"]\n'
    )
    base.article(fence("python fix", SEES))
    assert base.verify().verdicts == {"KB0001/fix1": "broken"}
    assert base.verify("--all", NAME="value").verdicts == {"KB0001/fix1": "holds"}
    assert base.verify("--all").verdicts == {"KB0001/fix1": "broken"}
    assert not parent().can(base.environment(PYTHONHASHSEED="1"))


def test_what_takes_too_long_is_ended(base: Base) -> None:
    """A command that takes longer than it may is killed, and the next one is run."""
    base.article(fence("python fix timeout=100", "import time\n\ntime.sleep(90)"))
    with pytest.raises(subprocess.TimeoutExpired):
        base.verify(timeout=2)
    assert base.running_after(10) == []
    assert base.kbtools("list").code == 0
