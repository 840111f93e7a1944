"""`kbtools verify --on ray`: the verdicts of one machine, whatever dies in the middle."""

from __future__ import annotations

import ast
import collections
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import rays
from bases import Base, Finished, fence

from kbtools import config
from kbtools.verification import ray as ray_engine

COUNT = int(os.environ.get("KBTOOLS_RAY_SNIPPETS", "48"))
"""Synthetic snippets; 200 take a minute a run."""
needs_ray = pytest.mark.skipif(find_spec("ray") is None, reason="ray is not installed here")

KINDS = (
    ("control", "import time\n\ntime.sleep(0.1)\nassert {i} >= 0"),
    ("repro fails=ValueError", "raise ValueError('the failure', {i})"),
    ("repro fails=SIGSEGV", "import os, signal\n\nos.kill(os.getpid(), signal.SIGSEGV)  # {i}"),
    ("repro fails=timeout timeout=0.5", "import time\n\ntime.sleep(60 + {i})"),
    ("fix", "import os\n\nos._exit(0)  # half-way, {i}"),
    ("deadend fails=exit:3", "import os\n\nos._exit(3)  # {i}"),
    ("fix", "assert {i} < 0, 'it never holds'"),
    ("control", "import time\n\ntime.sleep(0.3 + {i} / 1000)"),
)


def articles(base: Base, count: int) -> None:
    """So many snippets of every kind, ten to an article."""
    for start in range(0, count, 10):
        fences = []
        for i in range(start, min(start + 10, count)):
            info, code = KINDS[i % len(KINDS)]
            fences.append(fence(f"python {info} id=s{i}", code.format(i=i)))
        base.article(*fences, number=start // 10 + 1)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """A Ray cluster of three nodes on the loopback, with a CPU each; one says it has two GPUs."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in rays.GIVEN.items():
            patch.setenv(name, value)
        from ray._common.utils import get_default_system_temp_dir
        from ray.cluster_utils import Cluster

        # where it leaves a note of its address
        Path(get_default_system_temp_dir()).mkdir(parents=True, exist_ok=True)
        node = {"node_ip_address": "127.0.0.1", "num_cpus": 1}
        nodes = Cluster(initialize_head=True, head_node_args=node)
        nodes.add_node(**node)
        nodes.add_node(**node, num_gpus=2)
        yield nodes
        nodes.shutdown()


def once_each(finished: Finished, base: Base, count: int) -> None:
    """Every snippet has one result, and at most one row of evidence."""
    assert len(finished.json["results"]) == len(finished.verdicts) == count
    rows = collections.Counter(
        json.loads(line)["snippet"]
        for file in (base.root / "evidence").glob("*.jsonl")
        for line in file.read_bytes().splitlines()
    )
    judged = [name for name, verdict in finished.verdicts.items() if verdict != "inconclusive"]
    assert sorted(rows) == sorted(name.partition("/")[2] for name in judged)
    assert set(rows.values()) == {1}


GPUS = """
import sys
from pathlib import Path
from concurrent.futures import ThreadPoolExecutor

from kbtools import config
from kbtools.verification import ray as ray_engine
from kbtools.verification.machines import EngineRequest
from kbtools.running import Run

code = '''
import os, time

began = time.time()
time.sleep(0.5)
print((os.environ["CUDA_VISIBLE_DEVICES"], began, time.time()))
'''
with ray_engine.ray_pool(config.find(Path(sys.argv[1])), sys.argv[2]) as pool:
    # not before: what Ray reads when it is imported is set by now
    from kbtools.verification.ray import worker_pool

    worker_pool.HOPELESS = 3.0
    [environment], _ = pool.toolchains(None)
    engine = pool.engine(environment, EngineRequest(runs=9))
    with engine, ThreadPoolExecutor(9) as threads:
        def ask(gpus, alone):
            run = Run(source=code, language="python", display_path="kb/a.md")
            outcome = engine.run(run, tuple(range(gpus)), lambda _: None, alone=alone).outcome
            return gpus, alone, outcome.status, outcome.output.strip()

        requests = [2, 1, 0, 1, 2, 1, 3, 1, 1], [False] * 7 + [True] * 2
        print(*sorted(threads.map(ask, *requests)), sep="\\n")
"""


@needs_ray
def test_gpus_are_had_through_ray(base: Base, cluster: Any) -> None:
    """A snippet gets as many GPUs as it asks for, alone if it must, or is lost if none has them."""
    words = ["-c", GPUS, str(base.root), f"ray://{cluster.address}"]
    ended = subprocess.run(
        [sys.executable, *words], capture_output=True, text=True, timeout=150, check=False
    )
    rows = [ast.literal_eval(line) for line in ended.stdout.splitlines()]
    assert [(gpus, status) for gpus, _, status, _ in rows] == [
        *[(0, "passed"), *[(1, "passed")] * 5, *[(2, "passed")] * 2, (3, "lost")]
    ], ended.stdout + ended.stderr
    ran = [(gpus, alone, *ast.literal_eval(output)) for gpus, alone, _, output in rows[:-1]]
    assert ran[0][2] == ""
    assert {visible for gpus, _, visible, *_ in ran if gpus == 1} <= {"0", "1"}
    assert {visible for gpus, _, visible, *_ in ran if gpus == 2} <= {"0,1", "1,0"}
    for _, alone, gpu, began, end in ran:
        on_it = [row for row in ran if gpu and gpu in row[2].split(",")]
        beside = [row for row in on_it if row[3] < end and began < row[4]]
        assert not alone or len(beside) == 1, f"GPU {gpu} was not its own: {beside}"


DIED = """
import sys
from pathlib import Path

from kbtools import config
from kbtools.verification import ray as ray_engine
from kbtools.verification.machines import EngineRequest
from kbtools.running import Run

run = Run(source="raise ValueError", language="python", display_path="kb/a.md")
with ray_engine.ray_pool(config.find(Path(sys.argv[1])), sys.argv[2]) as pool:
    import ray

    [environment], _ = pool.toolchains(None)
    with pool.engine(environment, EngineRequest(runs=1)) as engine:
        starts = []

        def kill_first(gpus):
            starts.append(gpus)
            if len(starts) == 1:
                ray.kill(engine.shared.pools[0].workers[0].actor)

        answer = engine.run(run, (), kill_first, control=True)
        print(answer.outcome.status, repr(answer.health_problem), len(starts))
"""


@needs_ray
def test_a_worker_that_has_died_is_not_unwell(base: Base, cluster: Any) -> None:
    """A run whose worker dies is made by another worker, which says whether it is well."""
    words = ["-c", DIED, str(base.root), f"ray://{cluster.address}"]
    ended = subprocess.run(
        [sys.executable, *words], capture_output=True, text=True, timeout=150, check=False
    )
    assert ended.stdout.splitlines() == ["failed '' 2"], ended.stdout + ended.stderr


@needs_ray
def test_three_machines_judge_as_the_local_one(new_base: Callable[..., Base], cluster: Any) -> None:
    """The same verdicts on a cluster as here; and again when a machine dies in the middle."""
    local, remote, dying = new_base(), new_base(), new_base()
    for base in (local, remote, dying):
        articles(base, COUNT)
    expected = local.verify("-j", "3", "--record", timeout=300)
    assert len(set(expected.verdicts.values())) == 4, expected.verdicts
    once_each(expected, local, COUNT)

    on = ("--on", f"ray://{cluster.address}")
    finished = remote.verify(*on, "--record", timeout=300)
    assert finished.verdicts == expected.verdicts, finished.err
    assert finished.code == expected.code
    once_each(finished, remote, COUNT)

    file = dying.root / "results.json"
    process = dying.start("verify", *on, "--record", "--json", str(file))
    until(lambda: count_rows(dying) >= COUNT // 3, process)
    victim = next(node for node in cluster.worker_nodes if not belongs(process.pid, node))
    cluster.remove_node(victim, allow_graceful=False)
    at = count_rows(dying)
    out, err = process.communicate(timeout=300)
    assert at < COUNT * 0.9, "it died in the middle"
    assert file.exists(), (process.returncode, out, err)
    finished = Finished(process.returncode, out, err, json.loads(file.read_bytes()))
    assert finished.verdicts == expected.verdicts, out + err
    once_each(finished, dying, COUNT)


def belongs(pid: int, node: Any) -> bool:
    """Whether a driver is connected to the raylet of this node: it would die with it."""
    sockets = subprocess.run(["ss", "-Hxp"], capture_output=True, text=True, check=True)
    rows = [line.split() for line in sockets.stdout.splitlines()]
    of_driver = {row[5] for row in rows if f"pid={pid}," in row[-1]}
    assert of_driver, "a driver has sockets"
    return any(row[4] == node.raylet_socket_name and row[7] in of_driver for row in rows)


def count_rows(base: Base) -> int:
    """Rows of evidence so far."""
    files = (base.root / "evidence").glob("*.jsonl")
    return sum(file.read_bytes().count(b"\n") for file in files)


def until(holds: Callable[[], bool], process: subprocess.Popen[str], seconds: float = 90) -> None:
    """Waits until something holds, as long as a process runs."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.05)


def listening() -> set[str]:
    """The addresses other than the loopback that a process of Ray listens on."""
    sockets = subprocess.run(["ss", "-Hltnp"], capture_output=True, text=True, check=False)
    rows = [line.split() for line in sockets.stdout.splitlines()]
    ours = [row for row in rows if any(name in row[-1] for name in ("raylet", "gcs_", "ray::"))]
    assert ours or sockets.returncode, "Ray listens somewhere"
    return {row[3] for row in ours if "127.0.0.1" not in row[3]}


@needs_ray
def test_a_cluster_of_this_machine(base: Base) -> None:
    """`--on ray` starts Ray, on the loopback alone; Ctrl-C ends it all, with what finished kept."""
    quick = [fence(f"python control id=q{i}", f"assert {i} < 3") for i in range(3)]
    slow = [fence(f"python control id=s{i}", "import time\n\ntime.sleep(300)") for i in range(2)]
    base.article(*quick, *slow)
    process = base.start("verify", "--on", "ray", "--record", "-j", "2")
    until(lambda: count_rows(base) == len(quick) and sleeping(base) == len(slow), process)
    time.sleep(0.5)  # a row is written before its result is told
    outside = listening()
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert outside == set()
    assert process.returncode == 130, out + err
    assert "interrupted: 3 of 5 finished, and kept" in err
    assert "Traceback" not in out + err
    assert {row["snippet"] for row in base.rows()} == {"q0", "q1", "q2"}
    assert base.running_after(10) == []
    assert list(base.temporary.iterdir()) == []


def sleeping(base: Base) -> int:
    """How many snippets run now: processes whose working folder is a scratch folder's."""
    count = 0
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            folder = str((process / "cwd").readlink())
            count += folder.startswith(str(base.temporary)) and folder.endswith("/work")
    return count


@needs_ray
def test_nobody_at_the_address(base: Base) -> None:
    """Where no cluster answers, that is a message and exit code 2, at once."""
    base.article(fence("python fix", "assert True"))
    finished = base.verify("--on", "ray://127.0.0.1:9")
    assert finished.code == 2
    assert finished.err.startswith("kbtools: no Ray cluster at 127.0.0.1:9: ")
    assert "Traceback" not in finished.err


@needs_ray
def test_a_snippet_that_kills_its_worker(base: Base) -> None:
    """Whatever kills its worker again and again is inconclusive, and the others are judged."""
    kills = """
    import os, pathlib, signal, time

    def parent(pid):
        return int(pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])

    zygote = parent(os.getppid())
    os.kill(parent(zygote), signal.SIGKILL)
    time.sleep(300)
    """
    controls = [fence(f"python control id=c{i}", f"assert {i} < 6") for i in range(6)]
    base.article(fence("python fix id=f1", kills), *controls)
    finished = base.verify("--on", "ray", "-j", "2", "--no-sandbox", timeout=120)
    assert finished.verdicts.pop("KB0001/f1") == "inconclusive", finished.out + finished.err
    assert "died, 4 times" in finished.result("f1")["reason"]
    assert set(finished.verdicts.values()) - {"inconclusive"} == {"holds"}
    assert [name for name, verdict in finished.verdicts.items() if verdict == "inconclusive"] == [
        "KB0001/f1"
    ]
    assert base.running_after(10) == []


def test_no_such_engine(base: Base) -> None:
    """A word other than `ray` is refused, and the message says which engines exist."""
    base.article(fence("python fix", "assert True"))
    finished = base.verify("--on", "slurm")
    assert finished.code == 2
    assert "unknown engine; it is ray or ray://ADDRESS" in finished.err


def test_ray_is_not_installed(base: Base, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without Ray the message says how to get it."""
    monkeypatch.setattr(ray_engine, "find_spec", lambda _: None)
    with pytest.raises(ray_engine.RayMissingError, match=r"next: pip install .*\[ray\]'"):
        ray_engine.ray_pool(config.find(base.root), "ray")
