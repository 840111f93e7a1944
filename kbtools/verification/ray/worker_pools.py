"""The engine of a Ray cluster: pools of workers, and a run made again where its worker died."""

from __future__ import annotations

from types import TracebackType
from typing import Self

import msgspec
import ray
from ray.exceptions import RayError, RayTaskError

from kbtools.outcome import Outcome
from kbtools.running import Run
from kbtools.running.zygote_process import ZygoteFailed
from kbtools.verification.machines import EngineRequest, OnStart, RunAnswer
from kbtools.verification.ray.worker import Order
from kbtools.verification.ray.worker_pool import Shared, WorkerPool, end_workers, first_line
from kbtools.verification.schedule import Capacity

TRIES = 4
"""A snippet is given up after this many of its workers died."""
SHARED = 2
"""Of these tries, how many may use a worker that runs other snippets, too.

Alone with a worker, it is a snippet's own fault (or its machine's) when that one dies.
"""


class WorkerPools:
    """For each number of GPUs that snippets ask for, pools of like workers."""

    def __init__(self, order: Order, request: EngineRequest, resources: dict[str, float]) -> None:
        """Starts nothing.

        Args:
            order: The toolchain of the workers.
            request: What the engine is created for.
            resources: What a machine must have to hold a worker, besides CPUs and GPUs.
        """
        total = ray.cluster_resources()
        room = int(total.get("CPU", 1) + order.config.run.share * total.get("GPU", 0))
        jobs = max(1, min(request.jobs or room, request.runs))
        # a machine may join later, as large as the one that the snippets were planned for
        gpus = max(request.gpus, int(total.get("GPU", 0)))
        self.capacity = Capacity(jobs, gpus, order.config.run.share)
        self.shared = Shared(order, request, resources, jobs)
        self._pools: dict[tuple[int, bool, bool], WorkerPool] = {}

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
        with self.shared.changed:
            self.shared.closed = True
            workers = [worker for pool in self.shared.pools for worker in pool.workers]
            for pool in self.shared.pools:
                pool.workers.clear()
            self.shared.changed.notify_all()
        end_workers(workers)
        self.shared.join()

    def prepare_forks(self, *, stored: bool = False) -> None:
        """Does nothing: workers are started when snippets wait for them."""

    def run(
        self,
        run: Run,
        gpus: tuple[int, ...],
        on_start: OnStart,
        *,
        alone: bool = False,
        control: bool = False,
    ) -> RunAnswer:
        """Runs one snippet; again on another worker when the one that has it dies."""
        reason, refusals = "", 0
        for attempt in range(TRIES):
            once = attempt >= SHARED
            pool = self._pool(len(gpus), alone=alone or once, once=once)
            worker = pool.take()
            if worker is None:
                return RunAnswer(Outcome("lost", message=pool.trouble or "cancelled"))
            on_start(worker.ready.gpus)
            try:
                answer: RunAnswer = ray.get(worker.actor.run.remote(run, control))
            except RayTaskError as error:
                if isinstance(error.cause, ZygoteFailed):
                    refusals += 1
                    if refusals == SHARED:
                        raise ZygoteFailed(str(error.cause)) from error
                    pool.discard(worker)  # its machine may be dying: ask another one
                else:
                    pool.give_back(worker)
                reason = repr(error.cause)
            except RayError as error:
                pool.discard(worker)
                reason = first_line(error)
            else:
                if answer.outcome.status != "lost" or self.shared.closed:
                    pool.give_back(worker)
                    return msgspec.structs.replace(answer, toolchain=worker.ready.toolchain)
                pool.discard(worker)  # its disk is full, or its zygote died: with it, perhaps
                reason = answer.outcome.message
        message = f"whatever ran it died, {TRIES} times; at last: {reason}"
        return RunAnswer(Outcome("lost", message=message))

    def _pool(self, gpus: int, *, alone: bool, once: bool) -> WorkerPool:
        kind = (gpus, alone, once)
        with self.shared.changed:
            if kind not in self._pools:
                self._pools[kind] = WorkerPool(self.shared, gpus, alone=alone, once=once)
                self.shared.pools.append(self._pools[kind])
            return self._pools[kind]
