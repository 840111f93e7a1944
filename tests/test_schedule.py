"""Which snippet starts when, and where: no GPU is asked for more than it has, and none is idle."""

from __future__ import annotations

import random
from collections.abc import Iterable

import msgspec
import pytest
from simulated import Span, makespan, spans

from kbtools.verification.schedule import Capacity, Job, Schedule

SECONDS = [0.3, 0.5, 1.0, 2.0, 5.0, 20.0, 75.0]


def seconds_of(job: Job) -> float:
    """What a job takes: as expected, or else 30 seconds."""
    return 30.0 if job.seconds is None else job.seconds


def run(jobs: Iterable[Job], capacity: Capacity) -> dict[int, Span]:
    """Number of a job → when and where it ran."""
    return {span.job.number: span for span in spans(Schedule(jobs, capacity), seconds_of)}


def starts(jobs: Iterable[Job], capacity: Capacity) -> list[int]:
    """The numbers of the jobs in the order in which they started."""
    return list(run(jobs, capacity))


def test_longest_first() -> None:
    """What takes longest starts first; what was never run starts before it."""
    jobs = [Job(n, seconds=seconds) for n, seconds in enumerate([1.0, None, 9.0, 3.0])]
    assert starts(jobs, Capacity(jobs=1)) == [1, 2, 3, 0]


def test_the_queues() -> None:
    """Several GPUs come first; then one for itself, then a place on one; then no GPU.

    With one job at a time nothing but the order decides.
    """
    jobs = [
        Job(0, seconds=99.0),
        Job(1, gpus=1, seconds=50.0),
        Job(2, gpus=1, alone=True, seconds=9.0),
        Job(3, gpus=2, seconds=1.0),
        Job(4, gpus=1),
    ]
    assert starts(jobs, Capacity(jobs=1, gpus=2)) == [3, 2, 4, 1, 0]


def test_what_waits_for_a_gpu_holds_no_worker() -> None:
    """While one snippet has every GPU, those that need none go on."""
    jobs = [Job(n, gpus=2, alone=True, seconds=10.0) for n in range(2)]
    jobs += [Job(n, seconds=1.0) for n in range(2, 12)]
    ran = run(jobs, Capacity(jobs=2, gpus=2))
    assert (ran[0].begin, ran[1].begin) == (0.0, 10.0)
    assert [ran[n].begin for n in range(2, 12)] == [float(n) for n in range(10)]


def test_no_sharer_starts_where_an_exclusive_job_waits() -> None:
    """A GPU that someone waits for is emptied: no stream of small snippets keeps it busy."""
    capacity = Capacity(jobs=8, gpus=1, share=2)
    sharers = [Job(n, gpus=1, seconds=5.0) for n in range(10)]
    schedule = Schedule([*sharers, Job(10, gpus=1, alone=True, seconds=1.0)], capacity)
    first = schedule.start()
    assert first and first.job.number == 10
    assert schedule.start() is None, "its GPU is its own"
    schedule.end(first)
    assert [p.job.number for p in iter(schedule.start, None)] == [0, 9]


def test_a_gpu_that_nobody_waits_for_is_shared() -> None:
    """One exclusive job reserves one GPU of two, and sharers have the other."""
    capacity = Capacity(jobs=8, gpus=2, share=2)
    schedule = Schedule(
        [
            Job(0, gpus=1, alone=True, forks=True),
            *(Job(n, gpus=1, seconds=5.0) for n in range(1, 9)),
        ],
        capacity,
        forks_are_ready=False,
    )
    placements = list(iter(schedule.start, None))
    assert [(p.job.number, p.gpus) for p in placements] == [(1, (1,)), (8, (1,))]


def test_long_and_short_ones_share_in_turn() -> None:
    """The short ones wait for the driver while the long ones compute; the unseen start first."""
    seconds = [None, 9.0, 8.0, 0.3, 0.2]
    jobs = [Job(n, gpus=1, seconds=expected) for n, expected in enumerate(seconds)]
    assert starts(jobs, Capacity(jobs=1, gpus=1)) == [0, 4, 1, 3, 2]


def test_some_gpus_are_shared_from_the_beginning_on() -> None:
    """What wants a GPU for itself holds the part of them that it needs for the whole run."""
    alone = [Job(n, gpus=1, alone=True, seconds=4.0) for n in range(4)]
    shared = [Job(n, gpus=1, seconds=4.0) for n in range(4, 12)]
    ran = run([*alone, *shared], Capacity(jobs=9, gpus=2, share=2))
    assert [(ran[n].begin, ran[n].gpus) for n in range(4)] == [(4.0 * n, (0,)) for n in range(4)]
    assert all(ran[n].gpus == (1,) for n in range(4, 12))
    without = run(alone, Capacity(jobs=9, gpus=2, share=2))
    assert [without[n].begin for n in range(4)] == [0.0, 0.0, 4.0, 4.0], "nobody else wants them"


def test_several_gpus_are_shared() -> None:
    """A snippet that needs a place on two GPUs waits for them together, before those that need one.

    Until it has them nothing is started on either.
    """
    capacity = Capacity(jobs=8, gpus=2, share=1)
    jobs = [Job(0, gpus=2), Job(1, gpus=2), *(Job(n, gpus=1, seconds=1.0) for n in range(2, 6))]
    schedule = Schedule(jobs, capacity)
    first = schedule.start()
    assert first and (first.job.number, first.gpus) == (0, (0, 1))
    assert schedule.start() is None
    both = run(jobs, msgspec.structs.replace(capacity, share=4))
    assert (both[0].begin, both[1].begin, both[2].begin) == (0.0, 0.0, 0.0)


def test_forks_wait_until_they_may_start() -> None:
    """Until modules are imported for forks, the jobs start that do not need them."""
    jobs = [Job(0, seconds=9.0, forks=True), Job(1, seconds=1.0), Job(2, seconds=2.0)]
    ran = spans(Schedule(jobs, Capacity(jobs=1), forks_are_ready=False), seconds_of, 2.5)
    assert [(span.job.number, span.begin) for span in ran] == [(2, 0.0), (1, 2.0), (0, 3.0)]


def test_sleepers_are_extra() -> None:
    """What mostly sleeps runs beside the jobs, up to a limit; beyond it, it is a job as any."""
    jobs = [Job(n, seconds=10.0, sleeps=True) for n in range(4)]
    jobs += [Job(n, seconds=4.0) for n in range(4, 8)]
    ran = run(jobs, Capacity(jobs=1, sleepers=2))
    assert [number for number, span in ran.items() if span.is_extra] == [0, 1, 3]
    assert ran[2].begin == 0.0, "there is a job for it, and it comes before shorter ones"
    alone = run(jobs, Capacity(jobs=1))
    assert sum(span.end - span.begin for span in alone.values()) == makespan(list(alone.values()))


def test_a_sleeper_holds_its_gpus() -> None:
    """A GPU that a sleeping job has to itself stays its own."""
    jobs = [Job(0, gpus=1, alone=True, seconds=9.0, sleeps=True), Job(1, gpus=1, seconds=1.0)]
    ran = run(jobs, Capacity(jobs=1, gpus=1, sleepers=1))
    assert ran[1].begin == 9.0


def test_more_gpus_than_there_are() -> None:
    """A snippet that needs more GPUs than the machine has would wait for ever."""
    with pytest.raises(ValueError, match="2 GPUs are needed, this machine has 1"):
        Schedule([Job(0, gpus=2)], Capacity(jobs=1, gpus=1))


def random_jobs(source: random.Random, gpus: int) -> list[Job]:
    """Jobs of every kind that so many GPUs allow."""
    jobs = []
    for number in range(source.randint(0, 60)):
        count = source.choice([0, 0, 0, 1, 1, *range(gpus + 1)]) if gpus else 0
        jobs.append(
            Job(
                number,
                min(count, gpus),
                alone=source.random() < 0.2,
                seconds=source.choice([None, *SECONDS]),
                sleeps=source.random() < 0.2,
                forks=source.random() < 0.5,
            )
        )
    return jobs


@pytest.mark.parametrize("seed", range(300))
def test_every_job_runs_and_nothing_is_asked_for_too_much(seed: int) -> None:
    """Whatever the jobs: each runs once, within the places, and an exclusive one really alone."""
    source = random.Random(seed)
    capacity = Capacity(
        jobs=source.randint(1, 9),
        gpus=source.randint(0, 4),
        share=source.randint(1, 4),
        sleepers=source.randint(0, 3),
    )
    jobs = random_jobs(source, capacity.gpus)
    actual = {job.number: source.choice(SECONDS) for job in jobs}
    schedule = Schedule(jobs, capacity, forks_are_ready=False)
    ran = spans(schedule, lambda job: actual[job.number], forks_ready_at=3.0)
    assert sorted(span.job.number for span in ran) == [job.number for job in jobs]
    assert len(schedule) == 0
    assert all(span.begin >= 3.0 for span in ran if span.job.forks)
    for span in ran:
        beside = [other for other in ran if other.begin <= span.begin < other.end]
        assert sum(not other.is_extra for other in beside) <= capacity.jobs
        assert sum(other.is_extra for other in beside) <= capacity.sleepers
        assert len(set(span.gpus)) == span.job.gpus
        for gpu in span.gpus:
            on_it = [other for other in beside if gpu in other.gpus]
            assert len(on_it) <= capacity.share
            assert len(on_it) == 1 or not any(other.job.alone for other in on_it)


@pytest.mark.parametrize("seed", range(100))
def test_no_worker_is_idle_while_a_job_could_run(seed: int) -> None:
    """Of jobs that need no GPU none starts later than if all workers had been busy until then."""
    source = random.Random(seed)
    jobs = [Job(n, seconds=source.choice(SECONDS)) for n in range(source.randint(1, 80))]
    count = source.randint(1, 9)
    last = max(span.begin for span in spans(Schedule(jobs, Capacity(jobs=count)), seconds_of))
    assert last <= sum(map(seconds_of, jobs)) / count
