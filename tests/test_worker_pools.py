"""Pools of workers on a Ray that a test plays: what each worker answers, and in which order."""

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
from kbtools.running.executor import ZygoteFailed
from kbtools.toolchains.model import Toolchain
from kbtools.verification.machines import EngineRequest
from kbtools.verification.ray import worker_pools
from kbtools.verification.ray.worker import Order, Ready

HERE = Toolchain("3.11.7", {})
PASSED, LOST = Outcome("passed"), Outcome("lost", message="no room on the disk")
EngineOn = Callable[["Played"], worker_pools.WorkerPools]
RUN = Run("pass\n", "python", "kb/KB0001-a.md")


class Played:
    """As much of `ray` as crews use; each worker that is hired gives the next of the answers."""

    def __init__(self, *answers: Outcome | Exception, start: float = 0.0) -> None:
        self.answers, self.start = list(answers), start
        self.ended = False
        self.asked_after_its_end: list[str] = []
        self.killed = 0

    def __getattr__(self, name: str) -> Any:
        if self.ended:
            self.asked_after_its_end.append(name)
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
            value=Ready(HERE, "node", ()), there=lambda: time.monotonic() - since >= self.start
        )
        done = SimpleNamespace(there=lambda: True, value=None)
        return SimpleNamespace(
            ready=SimpleNamespace(remote=lambda: ready),
            run=SimpleNamespace(
                remote=lambda _: SimpleNamespace(value=self.answers.pop(0), there=lambda: True)
            ),
            close=SimpleNamespace(remote=lambda: done),
        )

    def _wait(self, said: list[Any], timeout: float, **_: int) -> tuple[list[Any], list[Any]]:
        until = time.monotonic() + timeout
        while not all(one.there() for one in said) and time.monotonic() < until:
            time.sleep(0.01)
        return [one for one in said if one.there()], []

    def _get(self, said: Any) -> Any:
        if isinstance(said.value, Exception):
            raise said.value
        return said.value

    def _kill(self, _: object) -> None:
        self.killed += 1


@pytest.fixture
def engine_on(base: Base, monkeypatch: pytest.MonkeyPatch) -> EngineOn:
    """An engine on the Ray that is played."""

    def on(played: Played) -> worker_pools.WorkerPools:
        monkeypatch.setattr(worker_pools, "ray", played)
        order = Order(config.find(base.root), None, "", None)
        return worker_pools.WorkerPools(order, EngineRequest(runs=1), {})

    return on


def refusal() -> Exception:
    """What Ray hands on when a worker's zygote does not start."""
    cause = ZygoteFailed("python: cannot be started")
    error: Exception = RayTaskError("run", "the traceback there", cause)
    return error


@pytest.mark.parametrize(
    "first", [LOST, refusal(), WorkerCrashedError()], ids=["lost", "refused", "died"]
)
def test_another_worker_is_asked(engine_on: EngineOn, first: Outcome | Exception) -> None:
    """A worker loses its run, has no zygote, or dies: what the next one says counts."""
    played = Played(first, PASSED)
    with engine_on(played) as engine:
        answer = engine.run(RUN, 0, lambda _: None)
    assert answer.outcome == PASSED
    assert played.killed == 2, "the first at once, the second at the end"


def test_what_every_worker_loses_is_lost(
    engine_on: EngineOn,
) -> None:
    """After some workers it is given up, with what the last one said."""
    played = Played(*[LOST] * worker_pools.TRIES)
    with engine_on(played) as engine:
        answer = engine.run(RUN, 0, lambda _: None)
    assert answer.outcome.status == "lost"
    assert answer.outcome.message.endswith(
        f"{worker_pools.TRIES} times; at last: no room on the disk"
    )
    assert not played.answers


def test_two_refusals_are_the_toolchains_fault(
    engine_on: EngineOn,
) -> None:
    """Two workers whose zygotes do not start: the toolchain cannot run, and that is said."""
    played = Played(refusal(), refusal(), PASSED)
    with engine_on(played) as engine, pytest.raises(ZygoteFailed, match="cannot be started"):
        engine.run(RUN, 0, lambda _: None)


def test_after_the_end_nobody_asks(engine_on: EngineOn) -> None:
    """`close` waits for a thread that is hiring a worker: Ray would end the process for asking."""
    played = Played(PASSED, start=60.0)
    engine = engine_on(played)
    asking = threading.Thread(target=engine.run, args=(RUN, 0, lambda _: None), daemon=True)
    asking.start()
    while not engine.pools() or not engine.pools()[0]._starting:
        time.sleep(0.01)
    engine.close()
    played.ended = True
    asking.join(5)
    time.sleep(0.7)  # longer than a hiring thread waits before it looks up
    assert not asking.is_alive()
    assert not played.asked_after_its_end
