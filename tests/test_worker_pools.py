"""Pools of workers on a Ray that a test imitates: each worker answers as the test says."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import rays
from bases import Base

if not hasattr(rays, "ray"):
    pytest.skip("ray is not installed here", allow_module_level=True)
from ray.exceptions import RayTaskError, WorkerCrashedError

from kbtools import config
from kbtools.outcome import Outcome
from kbtools.running import Run
from kbtools.running.zygote_process import ZygoteFailed
from kbtools.toolchains.model import Toolchain
from kbtools.verification.machines import EngineRequest, RunAnswer
from kbtools.verification.ray import worker_pool, worker_pools
from kbtools.verification.ray.worker import Order, Ready

LOCAL = Toolchain("3.11.7", {})
PASSED, LOST = Outcome("passed"), Outcome("lost", message="no room on the disk")
EngineOn = Callable[["Played"], worker_pools.WorkerPools]
RUN = Run("pass\n", "python", "kb/KB0001-a.md")


class Played:
    """As much of `ray` as pools use; each worker that is started gives the next of the answers."""

    def __init__(self, *answers: Outcome | Exception, start: float = 0.0) -> None:
        self.answers, self.start = list(answers), start
        self.ended = False
        self.calls_after_its_end: list[str] = []
        self.killed = 0
        self.controls: list[bool] = []

    def __getattr__(self, name: str) -> Any:
        if self.ended:
            self.calls_after_its_end.append(name)
        return getattr(self, f"_{name}")

    def _cluster_resources(self) -> dict[str, float]:
        return {"CPU": 1.0}

    def _nodes(self) -> list[dict[str, Any]]:
        return [{"Alive": True, "Resources": {"CPU": 1.0}}]

    def _remote(self, _: type) -> Any:
        return SimpleNamespace(options=lambda **_: SimpleNamespace(remote=self._worker))

    def _worker(self, *_: object) -> Any:
        since = time.monotonic()
        ready = SimpleNamespace(
            value=Ready(LOCAL, "node", ()), has_come=lambda: time.monotonic() - since >= self.start
        )
        closed = SimpleNamespace(has_come=lambda: True, value=None)
        return SimpleNamespace(
            ready=SimpleNamespace(remote=lambda: ready),
            run=SimpleNamespace(remote=self._run),
            close=SimpleNamespace(remote=lambda: closed),
        )

    def _run(self, _: Run, control: bool) -> Any:
        self.controls.append(control)
        answer = self.answers.pop(0)
        value = RunAnswer(answer) if isinstance(answer, Outcome) else answer
        return SimpleNamespace(value=value, has_come=lambda: True)

    def _wait(self, futures: list[Any], timeout: float, **_: int) -> tuple[list[Any], list[Any]]:
        until = time.monotonic() + timeout
        while not all(future.has_come() for future in futures) and time.monotonic() < until:
            time.sleep(0.01)
        return [future for future in futures if future.has_come()], []

    def _get(self, future: Any) -> Any:
        if isinstance(future.value, Exception):
            raise future.value
        return future.value

    def _kill(self, _: object) -> None:
        self.killed += 1


@pytest.fixture
def engine_on(base: Base, monkeypatch: pytest.MonkeyPatch) -> EngineOn:
    """An engine on the Ray that is played."""

    def on(played: Played) -> worker_pools.WorkerPools:
        for module in (worker_pool, worker_pools):
            monkeypatch.setattr(module, "ray", played)
        order = Order(config.find(base.root), None, "", None)
        return worker_pools.WorkerPools(order, EngineRequest(runs=1), {})

    return on


def refusal() -> Exception:
    """The error that Ray passes on when a worker's zygote does not start."""
    cause = ZygoteFailed("python: cannot be started")
    error: Exception = RayTaskError("run", "the traceback there", cause)
    return error


@pytest.mark.parametrize(
    "first", [LOST, refusal(), WorkerCrashedError()], ids=["lost", "refused", "died"]
)
@pytest.mark.parametrize("control", [False, True], ids=["", "with a control"])
def test_a_run_is_made_on_the_next_worker(
    engine_on: EngineOn, first: Outcome | Exception, control: bool
) -> None:
    """A worker loses its run, has no zygote, or dies: the answer of the next one counts."""
    played = Played(first, PASSED)
    with engine_on(played) as engine:
        answer = engine.run(RUN, (), lambda _: None, control=control)
    assert (answer.outcome, answer.toolchain) == (PASSED, LOCAL)
    assert played.controls == [control] * 2
    assert played.killed == 2, "the first at once, the second at the end"


def test_what_every_worker_loses_is_lost(
    engine_on: EngineOn,
) -> None:
    """After some workers it is given up, with the message of the last one."""
    played = Played(*[LOST] * worker_pools.TRIES)
    with engine_on(played) as engine:
        answer = engine.run(RUN, (), lambda _: None)
    assert answer.outcome.status == "lost"
    assert answer.outcome.message.endswith(
        f"{worker_pools.TRIES} times; at last: no room on the disk"
    )
    assert not played.answers


def test_two_refusals_are_the_toolchains_fault(
    engine_on: EngineOn,
) -> None:
    """If the zygotes of two workers do not start, the toolchain is reported as unable to run."""
    played = Played(refusal(), refusal(), PASSED)
    with engine_on(played) as engine, pytest.raises(ZygoteFailed, match="cannot be started"):
        engine.run(RUN, (), lambda _: None)


def test_ray_is_not_called_after_the_end(engine_on: EngineOn) -> None:
    """`close` waits for a thread that starts a worker: Ray ends a process that asks it later."""
    played = Played(PASSED, start=60.0)
    engine = engine_on(played)
    runner = threading.Thread(target=engine.run, args=(RUN, (), lambda _: None), daemon=True)
    runner.start()
    while not engine.shared.pools or not engine.shared.pools[0].starting:
        time.sleep(0.01)
    engine.close()
    played.ended = True
    runner.join(5)
    time.sleep(0.7)  # longer than a thread that starts a worker waits between two looks
    assert not runner.is_alive()
    assert not played.calls_after_its_end
