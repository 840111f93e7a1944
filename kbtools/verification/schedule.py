"""Which snippet runs next, and on which GPUs. It knows no clock, no thread and no process.

What wants whole GPUs comes first, then what wants places on several, then what wants a place on
one, then what needs none; in each of these queues what takes longest comes first, and what was
never run before all others, as it may take longer still. A snippet that lacks what it needs lets
those behind it go ahead, with one exception: nothing else is started on the GPUs that such a
snippet waits for, or they might never be free for it at once.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable

import msgspec

from kbtools.running import Slots


class Capacity(msgspec.Struct, frozen=True):
    """How many snippets may run at once."""

    jobs: int
    """Of those that use a processor."""
    gpus: int = 0
    share: int = 4
    """Snippets that may share a GPU."""
    sleepers: int = 0
    """Of those that mostly sleep, in addition to `jobs`."""


class Job(msgspec.Struct, frozen=True):
    """A snippet to be run: what it needs, and what it takes."""

    number: int
    """Its own among the jobs of a schedule."""
    gpus: int = 0
    alone: bool = False
    """Whether no other snippet may share its GPUs."""
    seconds: float | None = None
    """That it is expected to take; None where nobody knows."""
    sleeps: bool = False
    """Whether it hardly uses a processor."""
    forks: bool = False
    """Whether it has to wait until modules are imported for it."""
    stored: bool = False
    """Whether it forks and uses the toolchain's store, and has to wait for both."""

    @property
    def is_demanding(self) -> bool:
        """Whether it wants more than a place on any one GPU: a whole GPU, or several at once."""
        return self.gpus > 1 or (self.gpus == 1 and self.alone)

    @property
    def rank(self) -> tuple[int, int, float, int]:
        """Sorts jobs into the order in which they should start.

        Of the demanding ones those come first that nobody may stand beside, since all others can
        stand beside each other; then those with the most GPUs, which later would have to wait
        until so many are free at once.
        """
        queue = (0 if self.alone else 1) if self.is_demanding else 2 if self.gpus else 3
        longest = -math.inf if self.seconds is None else -self.seconds
        return queue, -self.gpus, longest, self.number


class Placement(msgspec.Struct, frozen=True):
    """A job that runs, and what it holds."""

    job: Job
    gpus: tuple[int, ...]
    """Their indices."""
    is_extra: bool
    """Whether it has one of the places for what mostly sleeps."""


class Schedule:
    """Jobs that wait, and what those that run hold. To be used by one thread at a time.

    schedule = Schedule(jobs, Capacity(jobs=2))
    while placement := schedule.start():
        ...  # begin to run `placement.job`; when it has ended: schedule.end(placement)
    """

    def __init__(
        self, jobs: Iterable[Job], capacity: Capacity, *, forks_are_ready: bool = True
    ) -> None:
        """Starts nothing.

        Args:
            jobs: All that are to be run.
            capacity: How many at once.
            forks_are_ready: Whether jobs that fork may start, or only after `allow_forks`.

        Raises:
            ValueError: a job needs more GPUs than there are.
        """
        self.capacity = capacity
        self._slots = Slots(capacity.gpus, capacity.share)
        self._forks_are_ready = self._stored_are_ready = forks_are_ready
        self._busy = self._asleep = 0
        # jobs that need the same wait in one line: only the first of each line is looked at
        self._lines: dict[tuple[int, bool, bool, bool, bool], deque[Job]] = {}
        for job in sorted(jobs, key=lambda job: job.rank):
            if job.gpus > capacity.gpus:
                raise ValueError(f"{job.gpus} GPUs are needed, this machine has {capacity.gpus}")
            kind = job.gpus, job.alone, job.sleeps, job.forks, job.stored
            self._lines.setdefault(kind, deque()).append(job)

    def __len__(self) -> int:
        """How many jobs have not been started."""
        return sum(map(len, self._lines.values()))

    def allow_forks(self, *, stored: bool = False) -> None:
        """Lets the jobs start that fork; those that use the store, or the others."""
        if stored:
            self._stored_are_ready = True
        else:
            self._forks_are_ready = True

    def start(self) -> Placement | None:
        """The next job that can start, which then holds what it needs; None if none can."""
        reserved: set[int] = set()
        for line in sorted((line for line in self._lines.values() if line), key=_rank_of_first):
            if placement := self._placed(line[0], reserved):
                line.popleft()
                return placement
            if line[0].is_demanding:
                waiting = line[0].gpus * len(line)
                limit = self._most_reserved(line[0])
                reserved.update(self._slots.emptiest(reserved)[: min(waiting, limit)])
        return None

    def _most_reserved(self, job: Job) -> int:
        """How many GPUs may be kept free for a job and those behind it that need the same.

        What has GPUs to itself leaves enough of them to what wants places on several, which may
        take much longer, where there are so many.
        """
        widest = max((line[0].gpus for line in self._lines.values() if line), default=0)
        rest = self.capacity.gpus - widest
        return rest if job.alone and rest > 0 else self.capacity.gpus

    def end(self, placement: Placement) -> None:
        """Frees what a job held."""
        self._slots.give_back(placement.gpus, alone=placement.job.alone)
        if placement.is_extra:
            self._asleep -= 1
        else:
            self._busy -= 1

    def _placed(self, job: Job, reserved: set[int]) -> Placement | None:
        """A job with what it needs, if that is free and not reserved."""
        if job.forks and not (self._stored_are_ready if job.stored else self._forks_are_ready):
            return None
        is_extra = job.sleeps and self._asleep < self.capacity.sleepers
        if not is_extra and self._busy >= self.capacity.jobs:
            return None
        gpus = self._slots.take(job.gpus, alone=job.alone, spare=reserved)
        if gpus is None:
            return None
        if is_extra:
            self._asleep += 1
        else:
            self._busy += 1
        return Placement(job, gpus, is_extra)


def _rank_of_first(line: deque[Job]) -> tuple[int, int, float, int]:
    return line[0].rank
