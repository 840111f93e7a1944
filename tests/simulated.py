"""A run of a schedule with a clock of its own: what runs when, and on which GPUs."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from kbtools.running import Slots
from kbtools.verification.schedule import Capacity, Job, Placement, Schedule


@dataclass(frozen=True)
class Span:
    """A job that has run."""

    job: Job
    gpus: tuple[int, ...]
    begin: float
    """Seconds since the beginning of the run."""
    end: float
    is_extra: bool = False


def spans(
    schedule: Schedule, seconds: Callable[[Job], float], forks_ready_at: float = 0.0
) -> list[Span]:
    """Runs every job of a schedule, in the order in which they start.

    Args:
        schedule: Says what starts.
        seconds: What a job takes, whatever it was expected to take.
        forks_ready_at: When jobs that fork may start.
    """
    order, now = itertools.count(), 0.0
    events: list[tuple[float, int, Placement | None]] = [(forks_ready_at, next(order), None)]
    result: list[Span] = []
    while True:
        while placement := schedule.start():
            end = now + seconds(placement.job)
            heapq.heappush(events, (end, next(order), placement))
            result.append(Span(placement.job, placement.gpus, now, end, placement.is_extra))
        if not events:
            return result
        now, _, ended = heapq.heappop(events)
        if ended is None:
            schedule.allow_forks()
        else:
            schedule.end(ended)


def in_order(
    jobs: Sequence[Job], capacity: Capacity, seconds: Callable[[Job], float]
) -> list[Span]:
    """As kbtools ran snippets before it had schedules: in the order given, by a pool of threads.

    A thread that has a job waits for its GPUs, and does nothing else meanwhile. Several GPUs were
    held alone.
    """
    slots = Slots(capacity.gpus, capacity.share)
    waiting, blocked = list(reversed(jobs)), list[Job]()
    order, now = itertools.count(), 0.0
    events: list[tuple[float, int, Span]] = []
    result: list[Span] = []
    while waiting or blocked or events:
        while waiting and len(blocked) + len(events) < capacity.jobs:
            blocked.append(waiting.pop())
        for job in tuple(blocked):
            gpus = slots.take(job.gpus, alone=job.alone or job.gpus > 1)
            if gpus is not None:
                blocked.remove(job)
                span = Span(job, gpus, now, now + seconds(job))
                heapq.heappush(events, (span.end, next(order), span))
                result.append(span)
        if len(blocked) + len(events) < capacity.jobs and waiting:
            continue
        now, _, ended = heapq.heappop(events)
        slots.give_back(ended.gpus, alone=ended.job.alone or ended.job.gpus > 1)
    return result


def makespan(ran: Sequence[Span]) -> float:
    """Seconds from the beginning to the end of the last job."""
    return max((span.end for span in ran), default=0.0)
