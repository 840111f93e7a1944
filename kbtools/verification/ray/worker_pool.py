"""Workers of a cluster that are alike, started while snippets wait for them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import msgspec
import ray
from ray.exceptions import RayError, RayTaskError

from kbtools.config import KbtoolsError
from kbtools.verification.machines import EngineRequest
from kbtools.verification.ray.worker import Order, Ready, Worker

START_FAILURES = 4
"""Workers in a row that do not start, until a pool gives up."""
LANES = 4
"""Snippets at once in one worker, a CPU for each: they share a zygote, and its memory."""
HOPELESS = 60.0
"""Seconds to wait for a worker that no machine of the cluster could ever hold."""


class StartCancelledError(Exception):
    """A worker that is being started has no snippet left to run."""


class PooledWorker(msgspec.Struct, eq=False):
    """A worker that has started."""

    actor: Any
    """Ray's handle of a `Worker`."""
    ready: Ready
    free: int
    """How many more snippets it can run at once."""
    lanes: int
    """How many snippets it can run at once."""

    @property
    def is_idle(self) -> bool:
        """Whether it runs nothing."""
        return self.free == self.lanes


class Shared:
    """What the pools of one engine share: a lock, and the threads that start and end workers."""

    def __init__(
        self, order: Order, request: EngineRequest, resources: dict[str, float], jobs: int
    ) -> None:
        """Starts nothing.

        Args:
            order: The toolchain of the workers.
            request: What the engine was created for.
            resources: What a machine must have to hold a worker, besides CPUs and GPUs.
            jobs: Snippets that the engine runs at once.
        """
        self.order, self.request, self.resources, self.jobs = order, request, resources, jobs
        self.changed = threading.Condition()
        """Held to read or change anything of a pool; notified when a waiting snippet may go on."""
        self.closed = False
        self.pools: list[WorkerPool] = []
        self._threads: list[threading.Thread] = []

    def in_background(self, work: Callable[..., None], *args: object) -> None:
        """Does something in a thread that `join` waits for; the caller holds the lock."""
        self._threads.append(threading.Thread(target=work, args=args, daemon=True))
        self._threads[-1].start()

    def join(self) -> None:
        """Waits for every thread: Ray ends the process if one asks it after its shutdown."""
        for thread in self._threads:
            thread.join()

    def make_room(self, pool: WorkerPool) -> None:
        """Ends the idle workers of the other pools, so that one of this pool can start.

        The caller holds the lock.
        """
        idle = []
        for neighbour in self.pools:
            if neighbour is not pool:
                idle += [worker for worker in neighbour.workers if worker.is_idle]
                neighbour.workers = [worker for worker in neighbour.workers if not worker.is_idle]
        if idle:
            self.in_background(end_workers, idle)


class WorkerPool:
    """As many workers as snippets wait for, and as the cluster has room for.

    A snippet may be `alone` with a worker as long as it runs, or be all that it ever runs (`once`).
    """

    def __init__(self, shared: Shared, gpus: int, *, alone: bool, once: bool) -> None:
        """Starts nothing.

        Args:
            shared: What this pool has in common with the engine's other pools.
            gpus: Of each worker.
            alone: Whether a worker runs one snippet at a time.
            once: Whether a worker runs one snippet and is ended.
        """
        self.shared, self.gpus, self.once = shared, gpus, once
        self.workers: list[PooledWorker] = []
        self.trouble = ""
        """Why no worker can be had; empty while one may come."""
        self.starting = 0
        """Workers that have been asked for and are not ready."""
        self._waiting = self._failures = 0
        if gpus:
            self.lanes = shared.order.config.run.share if gpus == 1 and not alone else 1
        else:
            self.lanes = 1 if alone else min(_smallest_node(), LANES, shared.jobs)
        self.cpus = 1 if gpus else self.lanes

    def take(self) -> PooledWorker | None:
        """Waits for a free worker and holds a lane of it; None when there will never be one."""
        since = time.monotonic()
        with self.shared.changed:
            self._waiting += 1
            try:
                while not (self.shared.closed or self.trouble):
                    if worker := self._emptiest():
                        worker.free -= 1
                        return worker
                    if self._needs_worker():
                        self.starting += 1
                        self.shared.in_background(self._start)
                    self.shared.changed.wait(1.0)
                    if not self.workers:
                        self.shared.make_room(self)
                        self._give_up_after(time.monotonic() - since)
                return None
            finally:
                self._waiting -= 1

    def give_back(self, worker: PooledWorker) -> None:
        """Frees the lane of a run that has ended; a worker for one snippet alone is ended."""
        with self.shared.changed:
            worker.free += 1
            is_over = self.once and worker in self.workers
            if is_over:
                self.workers.remove(worker)
            self.shared.changed.notify_all()
        if is_over:
            end_workers([worker])

    def discard(self, worker: PooledWorker) -> None:
        """Removes a worker that died or cannot be reached; what it may still do does not count."""
        with self.shared.changed:
            if worker in self.workers:
                self.workers.remove(worker)
            self.shared.changed.notify_all()
        with suppress(RayError, ValueError):
            ray.kill(worker.actor)

    # The steps of `take`; the caller holds the lock.

    def _emptiest(self) -> PooledWorker | None:
        """The worker with the most free lanes, if one has any."""
        free = [worker for worker in self.workers if worker.free]
        return max(free, key=lambda worker: worker.free, default=None)

    def _needs_worker(self) -> bool:
        """Whether more snippets wait than will find room, and the cluster has room for a worker."""
        if self._waiting <= self.starting * self.lanes:
            return False
        total = ray.cluster_resources()
        name, amount = ("GPU", self.gpus) if self.gpus else ("CPU", self.cpus)
        room = max(1, int(total.get(name, 0) // amount))
        useful = -(-self.shared.jobs // self.lanes)
        return len(self.workers) + self.starting < min(room, useful)

    def _give_up_after(self, waited: float) -> None:
        """Ends the wait if it took `waited` seconds and no machine could ever hold a worker."""
        if waited > HOPELESS and not self._is_possible():
            needs = f"{self.gpus} GPUs" if self.gpus else f"{self.cpus} CPUs"
            self.trouble = f"no machine of the cluster has {needs} any more"

    def _is_possible(self) -> bool:
        needs = {"CPU": self.cpus, "GPU": self.gpus, **self.shared.resources}
        return any(
            all(node["Resources"].get(name, 0) >= amount for name, amount in needs.items())
            for node in ray.nodes()
            if node["Alive"]
        )

    # Starting a worker, in a thread of its own.

    def _start(self) -> None:
        """Starts a worker and waits until it is ready, however long the cluster is busy."""
        actor: Any = None
        try:
            actor = self._actor()
            worker = PooledWorker(actor, self._wait_until_ready(actor), self.lanes, self.lanes)
        except Exception as error:
            self._note_failure(error)
            if actor is not None:
                with suppress(RayError, ValueError):
                    ray.kill(actor)
            return
        with self.shared.changed:
            self.starting -= 1
            self._failures = 0
            if not self.shared.closed:
                self.workers.append(worker)
            self.shared.changed.notify_all()
        if self.shared.closed:
            end_workers([worker])

    def _actor(self) -> Any:
        return (
            ray.remote(Worker)
            .options(
                num_cpus=self.cpus,
                num_gpus=self.gpus,
                resources=self.shared.resources,
                max_concurrency=self.lanes + 1,  # one to close it by
                max_restarts=0,  # Ray must not make a run again: we count the attempts
            )
            .remote(self.shared.order, self.shared.request)
        )

    def _wait_until_ready(self, actor: Any) -> Ready:
        """Waits for a worker's first answer.

        Raises:
            StartCancelledError: the engine was closed meanwhile, or this pool has given up.
            RayError: the worker did not start.
        """
        future = actor.ready.remote()
        while not ray.wait([future], timeout=0.5)[0]:
            if self.shared.closed or self.trouble:
                raise StartCancelledError("no snippet waits for this worker")
        ready: Ready = ray.get(future)
        return ready

    def _note_failure(self, error: Exception) -> None:
        cause = error.cause if isinstance(error, RayTaskError) else error
        with self.shared.changed:
            self.starting -= 1
            self._failures += 1
            # a machine without the toolchain will not have it a moment later; one that died may
            # have been the only one that was ill
            if isinstance(cause, KbtoolsError) or self._failures >= START_FAILURES:
                self.trouble = f"no worker can be had: {first_line(cause)}"
            self.shared.changed.notify_all()


def end_workers(workers: list[PooledWorker]) -> None:
    """Lets workers end what they run and clean up, for some seconds; then ends them."""
    futures = []
    with suppress(RayError, RuntimeError):
        futures = [worker.actor.close.remote() for worker in workers]
        if futures:
            ray.wait(futures, num_returns=len(futures), timeout=5)
    for worker in workers:
        with suppress(RayError, RuntimeError, ValueError):
            ray.kill(worker.actor)


def first_line(error: BaseException | None) -> str:
    """The first line of an error that says something."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else repr(error)


def _smallest_node() -> int:
    """CPUs of the machine with the fewest, of those that have one."""
    nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    return min((int(node["CPU"]) for node in nodes if node.get("CPU", 0) >= 1), default=1)
