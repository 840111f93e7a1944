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
from kbtools.verification.machines import Answer, Gone, Started, Wanted
from kbtools.verification.ray.worker import Order, Ready, Worker

TRIES, SHARED = 4, 2
"""Workers that a snippet may see die, and how many of them it may share with other snippets.

Alone with a worker, it is a snippet's own fault (or its machine's) when that one dies.
"""
LANES = 4
"""Snippets at once in one worker, a CPU for each: they share a zygote, and its memory."""
HOPELESS = 60.0
"""Seconds to wait for a worker that no machine of the cluster could ever hold."""


class Hired(msgspec.Struct, eq=False):
    """A worker that is there."""

    actor: Any
    ready: Ready
    free: int
    lanes: int


class Crews:
    """The engine: for each number of GPUs that snippets ask for, crews of like workers."""

    def __init__(self, order: Order, wanted: Wanted, resources: dict[str, float]) -> None:
        self.order, self.wanted, self.resources = order, wanted, resources
        self.changed = threading.Condition()
        self.closed = False
        self._crews: dict[tuple[int, bool, bool], Crew] = {}
        self._beside: list[threading.Thread] = []
        total = ray.cluster_resources()
        room = int(total.get("CPU", 1) + order.config.run.share * total.get("GPU", 0))
        self.jobs = max(1, min(wanted.jobs or room, wanted.runs))

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
            workers = [one for crew in self.crews() for one in crew.workers]
            for crew in self.crews():
                crew.workers.clear()
            self.changed.notify_all()
        dismiss(workers)
        for thread in self._beside:
            thread.join()

    def beside(self, work: Callable[..., None], *about: object) -> None:
        """Does something in a thread that `close` waits for; the caller holds the lock."""
        self._beside.append(threading.Thread(target=work, args=about, daemon=True))
        self._beside[-1].start()

    def crews(self) -> list[Crew]:
        """All of them; the caller holds the lock."""
        return list(self._crews.values())

    def run(self, run: Run, gpus: int, started: Started, *, alone: bool = False) -> Answer:
        """Runs one snippet; again on another worker when the one that has it dies."""
        why, refusals = "", 0
        for attempt in range(TRIES):
            once = attempt >= SHARED
            crew = self._crew(gpus, alone=alone or once, once=once)
            worker = crew.take()
            if worker is None:
                return Answer(Outcome("lost", message=crew.trouble or "cancelled"))
            started(worker.ready.gpus)
            try:
                outcome = ray.get(worker.actor.run.remote(run))
            except RayTaskError as error:
                if isinstance(error.cause, ZygoteFailed):
                    refusals += 1
                    if refusals == SHARED:
                        raise ZygoteFailed(str(error.cause)) from error
                    crew.lost(worker)  # its machine may be dying: what another says counts
                else:
                    crew.give_back(worker)
                why = repr(error.cause)
            except RayError as error:
                crew.lost(worker)
                why = _first_line(error)
            else:
                if outcome.status != "lost" or self.closed:
                    crew.give_back(worker)
                    return Answer(outcome, worker.ready.toolchain, worker)
                crew.lost(worker)  # its disk is full, or its zygote died: with it, perhaps
                why = outcome.message
        message = f"whatever ran it died, {TRIES} times; at last: {why}"
        return Answer(Outcome("lost", message=message))

    def illness(self, language: str, requires: str, gpus: int, answer: Answer) -> str:
        """Why the machine that gave an answer is unwell.

        Raises:
            Gone: that machine, or only the worker on it, has died since.
        """
        assert isinstance(answer.place, Hired)
        try:
            return str(ray.get(answer.place.actor.illness.remote(language, requires)))
        except RayTaskError as error:
            return _first_line(error.cause)
        except RayError as error:
            raise Gone(_first_line(error)) from error

    def _crew(self, gpus: int, *, alone: bool, once: bool) -> Crew:
        with self.changed:
            kind = (gpus, alone, once)
            if kind not in self._crews:
                self._crews[kind] = Crew(self, gpus, alone=alone, once=once)
            return self._crews[kind]

    def make_room(self, crew: Crew) -> None:
        """Dismisses the idle workers of the other crews, so that one of this crew can come."""
        with self.changed:
            idle = []
            for other in self.crews():
                if other is not crew:
                    idle += [one for one in other.workers if one.free == one.lanes]
                    other.workers = [one for one in other.workers if one.free < one.lanes]
        if idle:  # the caller holds the lock
            self.beside(dismiss, idle)


class Crew:
    """Workers that are alike: as many as snippets wait for, and as the cluster has room for.

    A snippet may be `alone` with a worker as long as it runs, or all that it ever runs (`once`).
    """

    def __init__(self, engine: Crews, gpus: int, *, alone: bool, once: bool) -> None:
        self.engine, self.gpus, self.once = engine, gpus, once
        self.workers: list[Hired] = []
        self.trouble = ""
        self._hiring = self._waiting = self._failures = 0
        nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
        cpus = min((int(one["CPU"]) for one in nodes if one.get("CPU", 0) >= 1), default=1)
        if gpus:
            self.lanes = engine.order.config.run.share if gpus == 1 and not alone else 1
        else:
            self.lanes = 1 if alone else min(cpus, LANES, engine.jobs)
        self.cpus = 1 if gpus else self.lanes

    def take(self) -> Hired | None:
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
                    if self._waiting > self._hiring * self.lanes and self._has_room():
                        self._hiring += 1
                        self.engine.beside(self._hire)
                    changed.wait(1.0)
                    if not self.workers:
                        self.engine.make_room(self)
                        if time.monotonic() - since > HOPELESS and not self._possible():
                            needs = f"{self.gpus} GPUs" if self.gpus else f"{self.cpus} CPUs"
                            self.trouble = f"no machine of the cluster has {needs} any more"
                return None
            finally:
                self._waiting -= 1

    def give_back(self, worker: Hired) -> None:
        """A run has ended; a worker for one snippet alone has done its work."""
        with self.engine.changed:
            worker.free += 1
            done = self.once and worker in self.workers
            if done:
                self.workers.remove(worker)
            self.engine.changed.notify_all()
        if done:
            dismiss([worker])

    def lost(self, worker: Hired) -> None:
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
        return len(self.workers) + self._hiring < min(room, wanted)

    def _possible(self) -> bool:
        needs = {"CPU": self.cpus, "GPU": self.gpus, **self.engine.resources}
        return any(
            all(node["Resources"].get(name, 0) >= amount for name, amount in needs.items())
            for node in ray.nodes()
            if node["Alive"]
        )

    def _hire(self) -> None:
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
                .remote(engine.order, engine.wanted)
            )
            said = actor.ready.remote()
            while not ray.wait([said], timeout=0.5)[0]:
                if engine.closed or self.trouble:
                    raise RuntimeError("no longer wanted")
            hired = Hired(actor, ray.get(said), self.lanes, self.lanes)
        except Exception as error:
            self._not_hired(error)
            if actor is not None:
                with suppress(RayError, ValueError):
                    ray.kill(actor)
            return
        with engine.changed:
            self._hiring -= 1
            self._failures = 0
            if not engine.closed:
                self.workers.append(hired)
            engine.changed.notify_all()
        if engine.closed:
            dismiss([hired])

    def _not_hired(self, error: Exception) -> None:
        cause = error.cause if isinstance(error, RayTaskError) else error
        with self.engine.changed:
            self._hiring -= 1
            self._failures += 1
            # a machine without the toolchain will not have it a moment later; one that died may
            # have been the only one that was ill
            if isinstance(cause, KbtoolsError) or self._failures >= TRIES:
                self.trouble = f"no worker can be had: {_first_line(cause)}"
            self.engine.changed.notify_all()


def dismiss(workers: list[Hired]) -> None:
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
