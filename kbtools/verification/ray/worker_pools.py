"""Workers on a cluster: hired where snippets wait for them, replaced when they die."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

import msgspec
import ray
from ray.exceptions import RayError, RayTaskError

from kbtools.config import KbtoolsError
from kbtools.outcome import Outcome
from kbtools.running import Run
from kbtools.running.executor import ZygoteFailed
from kbtools.verification.machines import EngineRequest, MachineLost, OnStart, RunAnswer
from kbtools.verification.ray.worker import Order, Ready, Worker

TRIES, SHARED = 4, 2
"""Workers that a snippet may see die, and how many of them it may share with other snippets.

Alone with a worker, it is a snippet's own fault (or its machine's) when that one dies.
"""
LANES = 4
"""Snippets at once in one worker, a CPU for each: they share a zygote, and its memory."""
HOPELESS = 60.0
"""Seconds to wait for a worker that no machine of the cluster could ever hold."""


class PooledWorker(msgspec.Struct, eq=False):
    """A worker that is there."""

    actor: Any
    ready: Ready
    free: int
    lanes: int


class WorkerPools:
    """The engine: for each number of GPUs that snippets ask for, pools of like workers."""

    def __init__(self, order: Order, request: EngineRequest, resources: dict[str, float]) -> None:
        self.order, self.request, self.resources = order, request, resources
        self.changed = threading.Condition()
        self.closed = False
        self._pools: dict[tuple[int, bool, bool], WorkerPool] = {}
        self._beside: list[threading.Thread] = []
        total = ray.cluster_resources()
        room = int(total.get("CPU", 1) + order.config.run.share * total.get("GPU", 0))
        self.jobs = max(1, min(request.jobs or room, request.runs))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Ends every run and every worker; afterwards nothing of this engine asks Ray for anything.

        Ray ends the whole process when a thread still asks it after its shutdown.
        """
        with self.changed:
            self.closed = True
            workers = [one for pool in self.pools() for one in pool.workers]
            for pool in self.pools():
                pool.workers.clear()
            self.changed.notify_all()
        dismiss(workers)
        for thread in self._beside:
            thread.join()

    def beside(self, work: Callable[..., None], *about: object) -> None:
        """Does something in a thread that `close` waits for; the caller holds the lock."""
        self._beside.append(threading.Thread(target=work, args=about, daemon=True))
        self._beside[-1].start()

    def pools(self) -> list[WorkerPool]:
        """All of them; the caller holds the lock."""
        return list(self._pools.values())

    def run(self, run: Run, gpus: int, started: OnStart, *, alone: bool = False) -> RunAnswer:
        """Runs one snippet; again on another worker when the one that has it dies."""
        why, refusals = "", 0
        for attempt in range(TRIES):
            once = attempt >= SHARED
            pool = self._pool(gpus, alone=alone or once, once=once)
            worker = pool.take()
            if worker is None:
                return RunAnswer(Outcome("lost", message=pool.trouble or "cancelled"))
            started(worker.ready.gpus)
            try:
                outcome = ray.get(worker.actor.run.remote(run))
            except RayTaskError as error:
                if isinstance(error.cause, ZygoteFailed):
                    refusals += 1
                    if refusals == SHARED:
                        raise ZygoteFailed(str(error.cause)) from error
                    pool.lost(worker)  # its machine may be dying: what another says counts
                else:
                    pool.give_back(worker)
                why = repr(error.cause)
            except RayError as error:
                pool.lost(worker)
                why = _first_line(error)
            else:
                if outcome.status != "lost" or self.closed:
                    pool.give_back(worker)
                    return RunAnswer(outcome, worker.ready.toolchain, worker)
                pool.lost(worker)  # its disk is full, or its zygote died: with it, perhaps
                why = outcome.message
        message = f"whatever ran it died, {TRIES} times; at last: {why}"
        return RunAnswer(Outcome("lost", message=message))

    def health_problem(self, language: str, requires: str, gpus: int, answer: RunAnswer) -> str:
        """Why the machine that gave an answer is unwell.

        Raises:
            MachineLost: that machine, or only the worker on it, has died since.
        """
        assert isinstance(answer.worker, PooledWorker)
        try:
            return str(ray.get(answer.worker.actor.health_problem.remote(language, requires)))
        except RayTaskError as error:
            return _first_line(error.cause)
        except RayError as error:
            raise MachineLost(_first_line(error)) from error

    def _pool(self, gpus: int, *, alone: bool, once: bool) -> WorkerPool:
        with self.changed:
            kind = (gpus, alone, once)
            if kind not in self._pools:
                self._pools[kind] = WorkerPool(self, gpus, alone=alone, once=once)
            return self._pools[kind]

    def make_room(self, pool: WorkerPool) -> None:
        """Dismisses the idle workers of the other pools, so that one of this pool can come."""
        with self.changed:
            idle = []
            for other in self.pools():
                if other is not pool:
                    idle += [one for one in other.workers if one.free == one.lanes]
                    other.workers = [one for one in other.workers if one.free < one.lanes]
        if idle:  # the caller holds the lock
            self.beside(dismiss, idle)


class WorkerPool:
    """Workers that are alike: as many as snippets wait for, and as the cluster has room for.

    A snippet may be `alone` with a worker as long as it runs, or all that it ever runs (`once`).
    """

    def __init__(self, engine: WorkerPools, gpus: int, *, alone: bool, once: bool) -> None:
        self.engine, self.gpus, self.once = engine, gpus, once
        self.workers: list[PooledWorker] = []
        self.trouble = ""
        self._starting = self._waiting = self._failures = 0
        nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
        cpus = min((int(one["CPU"]) for one in nodes if one.get("CPU", 0) >= 1), default=1)
        if gpus:
            self.lanes = engine.order.config.run.share if gpus == 1 and not alone else 1
        else:
            self.lanes = 1 if alone else min(cpus, LANES, engine.jobs)
        self.cpus = 1 if gpus else self.lanes

    def take(self) -> PooledWorker | None:
        """Waits for a free worker and holds a lane of it; None when there will never be one."""
        changed = self.engine.changed
        since = time.monotonic()
        with changed:
            self._waiting += 1
            try:
                while not (self.engine.closed or self.trouble):
                    free = [worker for worker in self.workers if worker.free]
                    if free:
                        chosen = max(free, key=lambda worker: worker.free)
                        chosen.free -= 1
                        return chosen
                    if self._waiting > self._starting * self.lanes and self._has_room():
                        self._starting += 1
                        self.engine.beside(self._start)
                    changed.wait(1.0)
                    if not self.workers:
                        self.engine.make_room(self)
                        if time.monotonic() - since > HOPELESS and not self._possible():
                            needs = f"{self.gpus} GPUs" if self.gpus else f"{self.cpus} CPUs"
                            self.trouble = f"no machine of the cluster has {needs} any more"
                return None
            finally:
                self._waiting -= 1

    def give_back(self, worker: PooledWorker) -> None:
        """A run has ended; a worker for one snippet alone has done its work."""
        with self.engine.changed:
            worker.free += 1
            done = self.once and worker in self.workers
            if done:
                self.workers.remove(worker)
            self.engine.changed.notify_all()
        if done:
            dismiss([worker])

    def lost(self, worker: PooledWorker) -> None:
        """A worker has died, or cannot be reached: whatever it may still do, nobody counts."""
        with self.engine.changed:
            if worker in self.workers:
                self.workers.remove(worker)
            self.engine.changed.notify_all()
        with suppress(RayError, ValueError):
            ray.kill(worker.actor)

    def _has_room(self) -> bool:
        total = ray.cluster_resources()
        of, each = ("GPU", self.gpus) if self.gpus else ("CPU", self.cpus)
        room = max(1, int(total.get(of, 0) // each))
        wanted = -(-self.engine.jobs // self.lanes)
        return len(self.workers) + self._starting < min(room, wanted)

    def _possible(self) -> bool:
        needs = {"CPU": self.cpus, "GPU": self.gpus, **self.engine.resources}
        return any(
            all(node["Resources"].get(name, 0) >= amount for name, amount in needs.items())
            for node in ray.nodes()
            if node["Alive"]
        )

    def _start(self) -> None:
        """Starts a worker and waits until it is ready, however long the cluster is busy."""
        engine = self.engine
        actor: Any = None
        try:
            actor = (
                ray.remote(Worker)
                .options(
                    num_cpus=self.cpus,
                    num_gpus=self.gpus,
                    resources=engine.resources,
                    max_concurrency=self.lanes + 1,  # one to close it by
                    max_restarts=0,  # a run is never made behind our back
                )
                .remote(engine.order, engine.request)
            )
            said = actor.ready.remote()
            while not ray.wait([said], timeout=0.5)[0]:
                if engine.closed or self.trouble:
                    raise RuntimeError("no longer wanted")
            worker = PooledWorker(actor, ray.get(said), self.lanes, self.lanes)
        except Exception as error:
            self._not_started(error)
            if actor is not None:
                with suppress(RayError, ValueError):
                    ray.kill(actor)
            return
        with engine.changed:
            self._starting -= 1
            self._failures = 0
            if not engine.closed:
                self.workers.append(worker)
            engine.changed.notify_all()
        if engine.closed:
            dismiss([worker])

    def _not_started(self, error: Exception) -> None:
        cause = error.cause if isinstance(error, RayTaskError) else error
        with self.engine.changed:
            self._starting -= 1
            self._failures += 1
            # a machine without the toolchain will not have it a moment later; one that died may
            # have been the only one that was ill
            if isinstance(cause, KbtoolsError) or self._failures >= TRIES:
                self.trouble = f"no worker can be had: {_first_line(cause)}"
            self.engine.changed.notify_all()


def dismiss(workers: list[PooledWorker]) -> None:
    """Lets workers end what they run and clean up, for some seconds; then ends them."""
    ends = []
    with suppress(RayError, RuntimeError):
        ends = [worker.actor.close.remote() for worker in workers]
        if ends:
            ray.wait(ends, num_returns=len(ends), timeout=5)
    for worker in workers:
        with suppress(RayError, RuntimeError, ValueError):
            ray.kill(worker.actor)


def _first_line(error: BaseException | None) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else repr(error)
