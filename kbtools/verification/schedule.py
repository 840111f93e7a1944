"""Which snippet runs next, and on which GPUs. It knows no clock, no thread and no process.

What wants several GPUs comes first, then what wants one for itself, then what wants a place on one,
then what needs none; in each of these queues what takes longest comes first, and what was never run
before all others, as it may take longer still. A snippet that lacks what it needs lets those behind
it go ahead, with one exception: nothing else is started on the GPUs that such a snippet waits for,
or they might never be free for it at once.

The driver makes and ends the contexts of all GPUs one after the other, under one lock. On two H200s
up to 23 processes waited for it at the end of a run, and few at its beginning. Two rules spread
these waits. So few GPUs are held alone at once that others are shared from the beginning on.
And of the snippets that share a GPU long and short ones start in turn: the short ones mostly wait
for the driver, and the long ones compute.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Sequence

import msgspec

from kbtools.running import Slots

UNSEEN = 2.0
"""Seconds that a job is taken for that nobody has run, where seconds are added up."""


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

        Several GPUs come first, and the most of them, which later would have to wait until so many
        are free at once.
        """
        queue = 0 if self.gpus > 1 else 3 if not self.gpus else 1 if self.alone else 2
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
        self._busy = self._asleep = self._held_alone = 0
        self._is_short_next = False
        jobs = list(jobs)
        self._most_held_alone = most_held_alone(jobs, capacity)
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
            if placement := self._placed(self._next_of(line), reserved):
                if placement.job is line[0]:
                    line.popleft()
                else:
                    line.pop()
                return placement
            if line[0].is_demanding:
                waiting = line[0].gpus * len(line)
                limit = self._left_for(line[0])
                reserved.update(self._slots.emptiest(reserved)[: min(waiting, limit)])
        return None

    def _next_of(self, line: deque[Job]) -> Job:
        """The first of a line; of those that share one GPU every second time the last."""
        first = line[0]
        is_shared = first.gpus == 1 and not first.alone and first.seconds is not None
        return line[-1] if is_shared and self._is_short_next else first

    def _left_for(self, job: Job) -> int:
        """How many GPUs a job and those behind it may still take for themselves, or reserve."""
        if job.alone and job.gpus == 1:
            return self._most_held_alone - self._held_alone
        return self.capacity.gpus

    def end(self, placement: Placement) -> None:
        """Frees what a job held."""
        self._slots.give_back(placement.gpus, alone=placement.job.alone)
        self._held_alone -= placement.job.gpus if placement.job.alone else 0
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
        if job.gpus and self._left_for(job) < 1:
            return None
        gpus = self._slots.take(job.gpus, alone=job.alone, spare=reserved)
        if gpus is None:
            return None
        self._held_alone += job.gpus if job.alone else 0
        if job.gpus == 1 and not job.alone:
            self._is_short_next = not self._is_short_next
        if is_extra:
            self._asleep += 1
        else:
            self._busy += 1
        return Placement(job, gpus, is_extra)


def most_held_alone(jobs: Sequence[Job], capacity: Capacity) -> int:
    """How many GPUs may be held alone at once, so that this goes on for the whole run.

    It is the part that such jobs have of the time of all GPUs, and at least one.
    """
    alone, shared = 0.0, 0.0
    for job in jobs:
        seconds = (UNSEEN if job.seconds is None else job.seconds) * job.gpus
        if job.alone:
            alone += seconds
        else:
            shared += seconds / capacity.share
    return max(1, round(capacity.gpus * alone / (alone + shared))) if alone else 0


def _rank_of_first(line: deque[Job]) -> tuple[int, int, float, int]:
    return line[0].rank
