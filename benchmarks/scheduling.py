"""What the order of snippets costs: simulated makespans, and a real run beside its prediction.

    python benchmarks/scheduling.py [--report FILE --jobs N] [--zygote SECONDS]

Without a report: every snippet of this base of which a run is recorded, with its recorded seconds,
on machines of several sizes. `before` is the policy that kbtools had before it had schedules: a
pool of threads takes snippets in the order of the articles, and a thread that has one waits for its
GPUs. `now` asks the very `Schedule` that `kbtools verify` asks. Both are given as a ratio to the
lower bound: the longest snippet, all seconds divided by the jobs, or the seconds for which GPUs are
held divided by the GPUs, whichever is longest. `unseen` is `now` where nobody has run a tenth of
the snippets yet, and they start first, or as if they took two seconds.

FILE is what `kbtools verify --all -j N --json FILE` wrote. The prediction then takes the seconds of
that run; what the run took beyond it was spent outside of snippets, or in runs made again.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

ROOT = Path(__file__).parents[1]
sys.path[0:0] = [str(ROOT), str(ROOT / "tests")]

from simulated import Span, in_order, makespan, spans  # noqa: E402

from kbtools import config  # noqa: E402
from kbtools.articles.model import SUFFIX, Article, Snippet  # noqa: E402
from kbtools.checks.base import load_base, readable_articles  # noqa: E402
from kbtools.evidence.expected import ExpectedTime, recorded_times  # noqa: E402
from kbtools.running import Run  # noqa: E402
from kbtools.toolchains.model import Toolchain  # noqa: E402
from kbtools.verification.schedule import Capacity, Job, Schedule  # noqa: E402

MACHINES = ((1, 8), (1, 16), (2, 8), (2, 16), (4, 16), (8, 32))
"""GPUs and jobs."""
Seconds = Callable[[Job], float]


class Machine(NamedTuple):
    """What snippets are run on, in a simulation."""

    capacity: Capacity
    zygote: float
    """Seconds until snippets that fork can start."""


class ReportedOutcome(msgspec.Struct, frozen=True):
    """The part of an outcome that is of interest here."""

    cpu_seconds: float | None = None


class ReportedResult(msgspec.Struct, frozen=True):
    """The part of a result that is of interest here."""

    article: str
    snippet: str
    seconds: float
    cached: bool
    outcome: ReportedOutcome | None


class Report(msgspec.Struct, frozen=True):
    """The part of `verify --json` that is of interest here."""

    toolchain: Toolchain
    seconds: float
    results: list[ReportedResult]


def job(number: int, snippet: Snippet, time: ExpectedTime) -> Job:
    """A snippet as the verifier hands it to a schedule."""
    run = Run(
        source=snippet.source,
        language=snippet.language,
        display_path=snippet.place.path,
        suffix=SUFFIX[snippet.language],
        env=snippet.env,
        tool=tuple((snippet.keys.tool or "").split()),
    )
    forks = run.isolation == "fork"
    return Job(number, snippet.gpus, snippet.alone, time.seconds, time.sleeps, forks=forks)


def lower_bound(jobs: Sequence[Job], capacity: Capacity, seconds: Seconds) -> float:
    """No order of the jobs takes less: seconds."""
    awake = [job for job in jobs if not (job.sleeps and capacity.sleepers)]
    work = sum(map(seconds, awake)) / capacity.jobs
    work = max(work, sum(map(seconds, jobs)) / (capacity.jobs + capacity.sleepers))
    return max(work, on_gpus(jobs, capacity, seconds), *map(seconds, jobs))


def simulated(jobs: Sequence[Job], machine: Machine, seconds: Seconds) -> list[Span]:
    """What runs when, by the schedule of `kbtools verify`."""
    schedule = Schedule(jobs, machine.capacity, forks_are_ready=False)
    return spans(schedule, seconds, machine.zygote)


def on_gpus(jobs: Sequence[Job], capacity: Capacity, seconds: Seconds) -> float:
    """Seconds in which every place of every GPU is taken, if all are shared out evenly."""
    places = sum(
        job.gpus * seconds(job) * (capacity.share if job.alone else 1) for job in jobs if job.gpus
    )
    return places / (capacity.gpus * capacity.share) if capacity.gpus else 0.0


def compare(articles: Sequence[Article], share: int, zygote: float) -> bool:
    """Prints a line for each size of machine; whether all are within 1.1 of the lower bound."""
    times = recorded_times(articles, config.find(ROOT))
    snippets = [s for article in articles for s in article.snippets if s.name in times]
    asleep = sum(time.sleeps for time in times.values())
    print(f"{len(snippets)} snippets with recorded seconds; {asleep} are known to mostly sleep")
    print("GPUs/jobs  snippets  bound s  on GPUs s  before  now   unseen: first  as 2 s")
    good = True
    for gpus, count in MACHINES:
        capacity = Capacity(count, gpus, share, sleepers=count)
        jobs = [
            job(number, snippet, times[snippet.name])
            for number, snippet in enumerate(snippets)
            if snippet.gpus <= gpus
        ]

        def seconds(job: Job) -> float:
            return job.seconds or 0.0

        actual = {job.number: seconds(job) for job in jobs}
        machine = Machine(capacity, zygote)
        bound = lower_bound(jobs, capacity, seconds)
        before = zygote + makespan(in_order(jobs, capacity, seconds))
        now = makespan(simulated(jobs, machine, seconds))
        # a tenth of the snippets as if nobody had run them yet
        others = {}
        for word, guess in (("first", None), ("2 s", 2.0)):
            unseen = [
                msgspec.structs.replace(job, seconds=guess) if job.number % 10 == 0 else job
                for job in jobs
            ]
            ran = simulated(unseen, machine, lambda job: actual[job.number])  # noqa: B023
            others[word] = makespan(ran) / bound
        good &= now / bound <= 1.1
        held = on_gpus(jobs, capacity, seconds)
        print(
            f"{gpus}/{count:<8} {len(jobs):>8} {bound:>8.0f} {held:>10.0f} {before / bound:>7.2f}"
            f" {now / bound:>5.2f} {others['first']:>14.2f} {others['2 s']:>7.2f}"
        )
    return good


def beside_a_run(articles: Sequence[Article], file: Path, machine: Machine) -> bool:
    """Prints a real run beside its prediction; whether it took at most 1.25 of the lower bound."""
    report = msgspec.json.decode(file.read_bytes(), type=Report)
    capacity = msgspec.structs.replace(machine.capacity, gpus=len(report.toolchain.gpus))
    ran = {
        f"{result.article}/{result.snippet}": result
        for result in report.results
        if result.outcome and not result.cached
    }
    times = recorded_times(articles, config.find(ROOT))
    snippets = [s for article in articles for s in article.snippets if s.name in ran]
    jobs = []
    for number, snippet in enumerate(snippets):
        result = ran[snippet.name]
        cpu_seconds = result.outcome.cpu_seconds if result.outcome else None
        measured = ExpectedTime(result.seconds, cpu_seconds)
        expected = times.get(snippet.name, ExpectedTime())
        # started in the order of what is recorded; what slept in this run needs no processor
        placed = job(number, snippet, expected)
        jobs.append(msgspec.structs.replace(placed, sleeps=measured.sleeps))

    def seconds(job: Job) -> float:
        return ran[snippets[job.number].name].seconds

    bound = lower_bound(jobs, capacity, seconds)
    predicted = makespan(simulated(jobs, Machine(capacity, machine.zygote), seconds))
    before = machine.zygote + makespan(in_order(jobs, capacity, seconds))
    cpu = [r.outcome.cpu_seconds for r in ran.values() if r.outcome and r.outcome.cpu_seconds]
    print(
        f"{len(jobs)} runs on {capacity.gpus} GPUs with {capacity.jobs} jobs:"
        f" {sum(map(seconds, jobs)):.0f} job seconds, {sum(cpu):.0f} CPU seconds\n"
        f"lower bound {bound:.0f} s, places on GPUs"
        f" {on_gpus(jobs, capacity, seconds):.0f} s, longest {max(map(seconds, jobs)):.0f} s\n"
        f"predicted   {predicted:.0f} s ({predicted / bound:.2f}); the order of the articles"
        f" {before:.0f} s ({before / bound:.2f})\n"
        f"real        {report.seconds:.0f} s ({report.seconds / bound:.2f} of the bound,"
        f" {report.seconds / predicted:.2f} of the prediction)"
    )
    return report.seconds <= 1.25 * bound


def main() -> None:
    """Prints the table, or a run beside its prediction."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--report", type=Path, help="what `verify --json` wrote")
    parser.add_argument("--jobs", type=int, default=16, help="those of that run")
    parser.add_argument("--zygote", type=float, default=6.3, help="seconds until forks can start")
    options = parser.parse_args()
    configuration = config.find(ROOT)
    articles, _ = readable_articles(load_base(configuration))
    articles = [article for article in articles if not article.matter.retired]
    share = configuration.run.share
    if options.report:
        sleepers = options.jobs if options.jobs > 1 else 0
        capacity = Capacity(options.jobs, 0, share, sleepers)
        good = beside_a_run(articles, options.report, Machine(capacity, options.zygote))
    else:
        good = compare(articles, share, options.zygote)
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
