"""Threads that do the jobs of a schedule, each as soon as the schedule lets it start."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Generic, TypeVar

import msgspec

from kbtools.verification.schedule import Placement, Schedule

Done = TypeVar("Done")


class Preparation(msgspec.Struct, frozen=True):
    """What jobs that fork have to wait for."""

    prepare: Callable[[], None]
    """Makes it ready."""
    stored: bool = False
    """Whether jobs that use the toolchain's store wait for it, or the others."""


class Workers(Generic[Done]):
    """As many threads as jobs may run at once. What waits for a GPU holds none of them."""

    def __init__(
        self,
        schedule: Schedule,
        do: Callable[[Placement], Done],
        preparations: Sequence[Preparation],
    ) -> None:
        """Starts nothing.

        Args:
            schedule: Says which job is next.
            do: Does a job; called in several threads at once.
            preparations: Make ready what jobs that fork have to wait for; each in a thread.
        """
        self._schedule, self._do, self._preparations = schedule, do, tuple(preparations)
        self._jobs = len(schedule)
        capacity = schedule.capacity
        threads = capacity.jobs + capacity.sleepers + len(self._preparations)
        self._threads = ThreadPoolExecutor(threads, "worker")
        self._lock = threading.Lock()
        """Held to ask the schedule, which is for one thread at a time."""
        self._stopped = False
        self._ended: queue.SimpleQueue[Future[Done]] = queue.SimpleQueue()

    def results(self) -> Iterator[Done]:
        """Does every job; yields what comes of each, in the order in which they end.

        Raises:
            Exception: whatever a job, or the preparation, raised.
        """
        for preparation in self._preparations:
            self._threads.submit(self._get_ready, preparation)
        self._start_jobs()
        for _ in range(self._jobs):
            yield self._ended.get().result()

    def stop(self) -> None:
        """Starts no further job, and does not wait for those that run."""
        with self._lock:
            self._stopped = True
        self._threads.shutdown(wait=False, cancel_futures=True)

    def join(self) -> None:
        """Waits for the jobs that run, after `stop`."""
        self._threads.shutdown(wait=True)

    def _get_ready(self, preparation: Preparation) -> None:
        try:
            preparation.prepare()
        except BaseException as error:
            self._ended.put(_failure(error))
            return
        with self._lock:
            self._schedule.allow_forks(stored=preparation.stored)
        self._start_jobs()

    def _start_jobs(self) -> None:
        """Starts every job that can start."""
        with self._lock:
            while not self._stopped and (placement := self._schedule.start()):
                self._threads.submit(self._work, placement)

    def _work(self, placement: Placement) -> None:
        ended: Future[Done]
        try:
            ended = Future()
            ended.set_result(self._do(placement))
        except BaseException as error:  # raised where the results are asked for
            ended = _failure(error)
        with self._lock:
            self._schedule.end(placement)
        self._ended.put(ended)
        self._start_jobs()


def _failure(error: BaseException) -> Future[Any]:
    future: Future[Any] = Future()
    future.set_exception(error)
    return future
