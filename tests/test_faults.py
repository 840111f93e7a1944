"""Faults that a snippet may have: each is judged right, and the next snippet runs as if alone.

One article holds them all, each followed by a snippet that looks around for damage.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from bases import Base, Finished, fence
from faults import FAULTS, LOOKS_AROUND, Fault

LIMITS = "timeout = 20\nmemory-gib = 2\nprocesses = 40"


@pytest.fixture(scope="module", params=["fork", "spawn"])
def run(request: pytest.FixtureRequest, new_base: Callable[..., Base]) -> tuple[Base, Finished]:
    """A run of all faults: the base, and what it left."""
    base = new_base(LIMITS)
    blocks = []
    for fault in FAULTS:
        blocks.append(fence(f"python {fault.info} id={fault.name}", fault.code))
        blocks.append(fence(f"python control id=after-{fault.name}", LOOKS_AROUND))
    base.article(*blocks)
    done = base.verify("--isolation", request.param, "-j", "4", timeout=120)
    assert done.json, done.err
    return base, done


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_fault_is_judged_right(run: tuple[Base, Finished], fault: Fault) -> None:
    """A snippet with a fault has the verdict it should have, for the reason it should have."""
    result = run[1].result(fault.name)
    assert (result["verdict"], fault.reason in result["reason"]) == (fault.verdict, True), result


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_the_next_snippet_is_as_if_alone(run: tuple[Base, Finished], fault: Fault) -> None:
    """What a faulty snippet did to its process, files and modules, the next one does not see."""
    result = run[1].result(f"after-{fault.name}")
    assert result["verdict"] == "holds", result


def test_nothing_is_left_running(run: tuple[Base, Finished]) -> None:
    """When `verify` has ended, no process of any snippet lives, and no temporary file is left."""
    base, done = run
    assert done.code == 1, "some faults are red"
    assert base.running() == []
    assert list(base.temporary.iterdir()) == []


@pytest.mark.parametrize("isolation", ["fork", "spawn"])
def test_what_a_snippet_leaves_is_ended_with_it(base: Base, isolation: str) -> None:
    """Children that a snippet leaves are gone when the next snippet begins, not later."""
    looks = """
    import os, pathlib

    runs = os.fsencode(pathlib.Path(__file__).parent.parent)
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            command = (process / "cmdline").read_bytes()
        except OSError:
            continue
        assert not (b"time.sleep(300)" in command and runs in command), command
    """
    leaves = [fault for fault in FAULTS if fault.name.startswith("leaves-")]
    assert len(leaves) == 3
    base.article(
        *(fence(f"python {fault.info} id={fault.name}", fault.code) for fault in leaves),
        fence("python control id=looks", looks),
    )
    done = base.verify("-j", "1", "--isolation", isolation)
    assert set(done.verdicts.values()) == {"holds"}, done.out


def test_long_output_keeps_its_head_and_its_tail(run: tuple[Base, Finished]) -> None:
    """Of 200 MB of output the first and the last lines are kept, under the cap."""
    output = run[1].result("prints-200-megabytes")["outcome"]["output"]
    assert output.startswith("the first line\n")
    assert output.endswith("\nthe last line\n")
    assert "bytes left out" in output
    assert len(output) < 25 * 1024


def test_bytes_that_are_not_text(run: tuple[Base, Finished]) -> None:
    """Output that is not UTF-8 is kept, each such byte as its number."""
    output = run[1].result("prints-bytes-that-are-not-utf-8")["outcome"]["output"]
    assert output == "caf\\xe9 \\xff\n"


def test_many_long_errors_at_once(base: Base) -> None:
    """Snippets that end at the same moment with long, odd messages are not confused."""
    names = [f"r{i}" for i in range(24)]
    code = "raise ValueError('{}' + ('\"\\\\\\n失败' * 2000))"
    fences = [fence(f"python repro fails=ValueError id={n}", code.format(n)) for n in names]
    base.article(*fences)
    done = base.verify("-j", "12")
    assert {done.result(n)["verdict"] for n in names} == {"reproduced"}
    assert all(done.result(n)["outcome"]["message"].startswith(n + '"') for n in names)


def test_a_path_at_the_end_of_a_long_message(base: Base) -> None:
    """A message is cut before it is cleaned: no half of a path of this machine is left of it."""
    code = "import sys\n\nraise ValueError(('word ' * 300)[: 1500 - 12] + sys.prefix + ' end')"
    base.article(fence("python repro fails=ValueError id=r1", code))
    message = base.verify().result("r1")["outcome"]["message"]
    assert message.rstrip().endswith("word") and len(message) > 1400


def test_a_zygote_that_is_killed_is_replaced(base: Base) -> None:
    """When the kernel kills the zygote, the snippets it ran are run again, and none is lost."""
    base.article(*(fence("python control", "import time\n\ntime.sleep(1)") for _ in range(4)))
    process = base.start("verify", "-j", "4")
    zygote = first_child(process.pid, "zygote.py")
    while len(base.running()) < 1 + 1 + 4 * 2:  # kbtools, zygote, and of each a keeper and a fork
        assert process.poll() is None
    os.kill(zygote, signal.SIGKILL)
    out, err = process.communicate(timeout=30)
    assert "4 holds" in out, out + err
    assert (process.returncode, base.running()) == (0, [])


def test_a_keeper_that_is_killed_takes_its_snippet_along(base: Base) -> None:
    """Where no sandbox keeps a snippet from killing its keeper, both end; the rest is judged."""
    kills = "import os, signal, time\n\nos.kill(os.getppid(), signal.SIGKILL)\ntime.sleep(300)"
    alone = """
    import os, pathlib

    def parent(pid):
        return int(pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])

    zygote = parent(os.getppid())
    assert pathlib.Path(f"/proc/{zygote}/task/{zygote}/children").read_text().split() == [
        str(os.getppid())
    ]
    """
    base.article(fence("python fix id=f1", kills), fence("python control id=c1", alone))
    done = base.verify("-j", "1", "--no-sandbox")
    assert done.verdicts == {"KB0001/f1": "inconclusive", "KB0001/c1": "holds"}, done.out
    assert "keeper died" in done.result("f1")["reason"]
    assert base.running_after(2) == []


def first_child(parent: int, command: str) -> int:
    """The child of a process whose command line holds a word; waits for it."""
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        for process in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                fields = (process / "stat").read_text().rpartition(")")[2].split()
                if int(fields[1]) == parent and command in (process / "cmdline").read_text():
                    return int(process.name)
    raise AssertionError(f"no child {command}")


def test_a_triton_kernel_in_a_snippet(base: Base) -> None:
    """Triton finds the source of a kernel that stands in a snippet."""
    pytest.importorskip("triton", reason="triton is not installed here")
    code = """
    import triton
    import triton.language as tl

    @triton.jit
    def kernel(x, n: tl.constexpr):
        tl.store(x + tl.arange(0, n), 1.0)

    assert "tl.store" in kernel.src
    """
    base.article(fence("python control id=c1", code), fence("python control id=c2", code))
    assert set(base.verify().verdicts.values()) == {"holds"}
