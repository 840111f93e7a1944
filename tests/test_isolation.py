"""How a snippet's process is made: the outcome and the evidence say what the snippet itself saw."""

from __future__ import annotations

import shutil
from typing import Any

import pytest
from bases import Base, Finished, fence

from kbtools.evidence import store

COMMAND_LINE = 'print(open("/proc/self/cmdline").read().replace("\\0", " "))\n'
"""A fork bears the command line of its zygote, an interpreter of its own that of `child.py`."""
PYTHON = {
    "control id=plain": COMMAND_LINE,
    "repro id=fails": f"{COMMAND_LINE}raise OSError('the failure')",
    "fix id=red": f"{COMMAND_LINE}raise OSError('the fix fails')",
    "repro id=crash fails=SIGKILL": f"{COMMAND_LINE}import os\nos.kill(os.getpid(), 9)",
    'control id=env env="NAME=value"': COMMAND_LINE,
    'control id=tool tool="env"': COMMAND_LINE,
    "control id=environ": f"import os\nassert os.environ\n{COMMAND_LINE}",
}
FORKED = ("plain", "fails", "crash")
"""Those that share their zygote's imports unless `--isolation spawn` is given."""


def interpreter_of(row: dict[str, Any]) -> str | None:
    """What its command line says of how the process of a Python snippet was made."""
    command = row["outcome"]["output"].splitlines()[0]
    assert ("zygote.py" in command) != ("child.py" in command), command
    return "fork" if "zygote.py" in command else "spawn"


@pytest.fixture(scope="module", params=["fork", "spawn"])
def run(request: pytest.FixtureRequest, new_base: Any) -> tuple[str, Base, Finished]:
    """One snippet of each kind: what `--isolation` asked for, the base, and what the run left."""
    base: Base = new_base("timeout = 30")
    fences = [fence(f"python {words}", code) for words, code in PYTHON.items()]
    base.article(*fences, fence("bash control id=bash", "echo the shell"))
    done = base.verify("--record", "--isolation", request.param, "-j", "2")
    assert done.code == 1 and done.verdicts["KB0001/red"] == "broken", done.err
    return request.param, base, done


def test_the_outcome_says_the_isolation(run: tuple[str, Base, Finished]) -> None:
    """What `--json` says of the isolation is what the snippet saw, whatever was asked for."""
    requested, _, done = run
    names = [words.split("id=")[1].split()[0] for words in PYTHON]
    for name in names:
        result = done.result(name)
        expected = requested if name in FORKED else "spawn"
        assert result["outcome"]["isolation"] == interpreter_of(result) == expected, name


def test_evidence_says_the_same(run: tuple[str, Base, Finished]) -> None:
    """A recorded row says which isolation the run had, and for a shell script it says nothing."""
    base = run[1]
    lines = base.rows()
    rows = store.read(base.root / "evidence", "KB0001")
    assert len(rows) == len(lines) == len(PYTHON) + 1
    for row, line in zip(rows, lines, strict=True):
        expected = None if row.snippet == "bash" else interpreter_of(line)
        assert (row.schema, row.isolation) == (2, expected), row.snippet
        assert line["outcome"].get("isolation") == expected, row.snippet
        assert "isolation" not in line, "it stands in the outcome alone"


def test_bash_has_none(run: tuple[str, Base, Finished]) -> None:
    """A shell is neither forked from a zygote nor an interpreter: the outcome says nothing."""
    assert "isolation" not in run[2].result("bash")["outcome"]


def test_cuda_has_none(base: Base) -> None:
    """Neither is what nvcc made."""
    if not shutil.which("nvcc"):
        pytest.skip("nvcc is not on the PATH")
    base.article(fence("cuda control requires=nvcc", "__global__ void kernel(int *x) { *x = 1; }"))
    [result] = base.verify().json["results"]
    assert result["verdict"] == "holds" and "isolation" not in result["outcome"]


def test_a_run_that_was_lost_has_none(base: Base) -> None:
    """Where a snippet's process could not be made, nothing says how it was."""
    base.article(fence('python control tool="no-such-tool"', "pass"))
    [result] = base.verify().json["results"]
    assert result["outcome"]["status"] == "lost" and "isolation" not in result["outcome"]
