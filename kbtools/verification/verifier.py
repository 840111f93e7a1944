"""Runs, judges and records the snippets of one toolchain."""

from __future__ import annotations

import datetime
import hashlib
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

from kbtools import __version__
from kbtools.articles import data_files
from kbtools.articles.model import SUFFIX, Snippet
from kbtools.articles.placeholders import skeleton_signature
from kbtools.config import Config
from kbtools.evidence import store
from kbtools.evidence.expected import ExpectedTime, expected_times
from kbtools.evidence.rows import SCHEMA, EvidenceError, Row
from kbtools.evidence.verdicts import Verdict, VerdictName, judge, verdict_without_run
from kbtools.outcome import Outcome
from kbtools.running import Run
from kbtools.running.executor import REPRO
from kbtools.verification.machines import Engine, EngineRequest, RunAnswer
from kbtools.verification.model import OnTaskStart, Result, RunOptions, Task
from kbtools.verification.schedule import Job, Placement, Schedule
from kbtools.verification.stores import uses_store, wanted_store
from kbtools.verification.workers import Preparation, Workers


class Verifier:
    """Runs and judges the snippets of one toolchain.

    Use it as a context manager: leaving it ends every process.

        with Verifier(config, tasks, RunOptions(), engine) as verifier:
            for result in verifier.verify():
                print(result.verdict.name)
    """

    def __init__(
        self,
        config: Config,
        tasks: Iterable[Task],
        options: RunOptions,
        engine: Callable[[EngineRequest], Engine],
    ) -> None:
        """Creates the engine, and starts nothing.

        Args:
            config: Of the knowledge base.
            tasks: What is to be verified, all on one toolchain.
            options: How.
            engine: Creates what runs them.
        """
        self.config, self.options = config, options
        self.tasks = tuple(tasks)
        store = wanted_store(config, self.tasks)
        users = [task for task in self.tasks if store and uses_store(config, task)]
        others = [task for task in self.tasks if not store or not uses_store(config, task)]
        self.uses_store = store is not None
        request = EngineRequest(
            runs=len(self.tasks),
            gpus=max((len(task.toolchain.gpus) for task in self.tasks), default=0),
            jobs=options.jobs,
            preload=() if options.spawn else worth_preloading(config, others),
            stored_preload=() if options.spawn else worth_preloading(config, users),
            sandbox=options.sandbox,
            store=store,
        )
        self.engine = engine(request)
        self.helper = hashlib.sha256(REPRO.read_bytes()).hexdigest() if REPRO.exists() else ""

    def __enter__(self) -> Self:
        self.engine.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.engine.__exit__(kind, error, trace)

    def verify(self, on_start: OnTaskStart = lambda *_: None) -> Iterator[Result]:
        """Verifies every task, several at a time; yields each result as it comes.

        What finished before the caller stops asking (or presses Ctrl-C) is remembered and recorded.
        """
        tasks = []
        for task in self.tasks:
            if result := self.result_without_run(task):
                yield result
            else:
                tasks.append(task)
        if not tasks:
            return

        def run(placement: Placement) -> Result:
            return self.result_of_run(tasks[placement.job.number], placement.gpus, on_start)

        jobs = self.jobs(tasks)
        schedule = Schedule(jobs, self.engine.capacity, forks_are_ready=False)
        preparations = [
            Preparation(partial(self.engine.prepare_forks, stored=stored), stored)
            for stored in sorted({job.stored for job in jobs if job.forks})
        ]
        workers = Workers(schedule, run, preparations)
        try:
            for result in workers.results():
                yield result
                if self.options.fail_fast and result.verdict.colour == "red":
                    return
        finally:
            workers.stop()
            self.engine.close()  # the threads wait for runs: end those first
            workers.join()

    def jobs(self, tasks: Sequence[Task]) -> list[Job]:
        """What tasks need and take; the number of each job is the place of its task."""
        articles = {task.article.id: task.article for task in tasks}
        times = expected_times(articles.values(), self.config)
        jobs = []
        for number, task in enumerate(tasks):
            snippet = task.snippet
            time = times.get(snippet.name, ExpectedTime())
            run = self.run_of(task)
            forks = run.isolation == "fork"
            jobs.append(
                Job(
                    *(number, snippet.gpus, snippet.alone, time.seconds, time.sleeps),
                    forks=forks,
                    stored=forks and run.stored,
                )
            )
        return jobs

    def verify_snippet(self, task: Task, on_start: OnTaskStart) -> Result:
        """Verifies one snippet, from its claim to its verdict, while no other is verified.

        Args:
            task: The snippet and its toolchain.
            on_start: Called when it is run, each time.
        """
        gpus = tuple(range(task.snippet.gpus))
        return self.result_without_run(task) or self.result_of_run(task, gpus, on_start)

    def result_without_run(self, task: Task) -> Result | None:
        """The result of a task that cannot be run, or whose outcome is remembered."""
        if verdict := verdict_without_run(task.expected):
            return Result(task, verdict)
        return self.recalled(task)

    def result_of_run(self, task: Task, gpus: tuple[int, ...], on_start: OnTaskStart) -> Result:
        """Runs and judges one snippet, a second time where that confirms a red verdict.

        Args:
            task: The snippet and its toolchain.
            gpus: Those that it gets, for both runs.
            on_start: Called when it is run, each time.
        """
        run = self.run_of(task)
        answer = self.run(task, run, gpus, on_start)
        task, verdict = judged(task, answer)
        if verdict.colour == "red":
            answer = self.confirm(task, run, gpus, on_start)
            task, verdict = judged(task, answer)
        scratch = run.keep if run.keep and run.keep.exists() else None
        result = Result(task, verdict, answer.outcome, scratch=scratch)
        if verdict.name is VerdictName.INCONCLUSIVE:
            return result
        return self.written(result, self.row(task, answer.outcome))

    def confirm(
        self, task: Task, run: Run, gpus: tuple[int, ...], on_start: OnTaskStart
    ) -> RunAnswer:
        """Runs a contradicted claim once more, and a control after it.

        The interpreter is new, because a fork may fail for what its zygote has imported.

        Args:
            task: The snippet, and what is expected of it.
            run: What was run the first time.
            gpus: Those that it had.
            on_start: Called when the new run begins.
        """
        spawned = msgspec.structs.replace(run, spawn=True)
        return self.run(task, spawned, gpus, on_start, control=True)

    def run_of(self, task: Task) -> Run:
        """What is run of a snippet."""
        snippet = task.snippet
        return Run(
            source=snippet.source,
            language=snippet.language,
            display_path=snippet.place.path,
            suffix=SUFFIX[snippet.language],
            timeout=self.limit(snippet),
            env=snippet.env,
            files=data_files.contents(self.config, snippet.data_files),
            tool=tuple(shlex.split(snippet.keys.tool or "")),
            compile_only=snippet.keys.requires == "nvcc",
            spawn=self.options.spawn,
            network=snippet.keys.net is not None,
            keep=self.folder_of(task),
            stored=self.uses_store and uses_store(self.config, task),
        )

    def folder_of(self, task: Task) -> Path | None:
        """Where the scratch folder of a snippet is kept; None where it is not."""
        if self.options.keep is None:
            return None
        return self.options.keep / f"{task.article.id}-{task.snippet.id}"

    def run(
        self,
        task: Task,
        run: Run,
        gpus: tuple[int, ...],
        on_start: OnTaskStart,
        *,
        control: bool = False,
    ) -> RunAnswer:
        """Runs a task's snippet once.

        Args:
            task: Whose snippet it is.
            run: What is run.
            gpus: Those that it gets.
            on_start: Called when it begins.
            control: Whether a known-good program is run after it.
        """
        return self.engine.run(
            run,
            gpus,
            lambda chosen: on_start(task, chosen),
            alone=task.snippet.alone,
            control=control,
        )

    def limit(self, snippet: Snippet) -> float:
        """Seconds that a snippet may take."""
        return self.options.timeout or snippet.keys.timeout or self.config.run.timeout

    def recalled(self, task: Task) -> Result | None:
        """The green result of an earlier run on this machine; None if the task is to be run."""
        if self.options.rerun_remembered or not (row := self.remembered(task)):
            return None
        verdict = judge(task.article, task.snippet, task.expected, row.outcome)
        # a red one is always run again: what is wrong may have been the machine
        if verdict.colour != "green":
            return None
        return self.written(Result(task, verdict, row.outcome, remembered=True), row)

    def remembered(self, task: Task) -> Row | None:
        """The row of an earlier run of the same code, helper and toolchain on this machine."""
        try:
            rows = store.read(self.config.memory, task.article.id)
        except EvidenceError:  # memory saves runs and holds nothing else: begin anew
            store.file_of(self.config.memory, task.article.id).unlink(missing_ok=True)
            return None
        identity, limit = task.toolchain.identity, self.limit(task.snippet)
        for row in store.of_snippet(rows, task.snippet):
            if row.toolchain.identity != identity or row.helper != self.helper_of(task):
                continue
            if row.outcome.status == "timeout" and row.outcome.seconds < limit:
                continue  # ended by a shorter limit than today's
            return row
        return None

    def helper_of(self, task: Task) -> str:
        """Digest of `kbtools.repro`, for a snippet that uses it."""
        return self.helper if task.snippet.uses_helper else ""

    def row(self, task: Task, outcome: Outcome) -> Row:
        """The row of a run that was just made."""
        return Row(
            schema=SCHEMA,
            snippet=task.snippet.id,
            code=task.snippet.digest,
            toolchain=msgspec.structs.replace(task.toolchain, programs=None),
            outcome=outcome,
            when=datetime.datetime.now(datetime.UTC).replace(microsecond=0),
            kbtools=__version__,
            helper=self.helper_of(task),
        )

    def written(self, result: Result, row: Row) -> Result:
        """Writes a row down, remembered and (if asked) as evidence; says so if it could not."""
        folders = [self.config.memory] if not result.remembered else []
        troubles = []
        matter = msgspec.to_builtins(result.task.article.matter)
        if self.options.record and skeleton_signature(matter):
            troubles.append("not recorded: its article still has the skeleton's signature")
        elif self.options.record:
            folders.append(self.config.evidence)
        for folder in folders:
            try:
                store.record(folder, result.task.article.id, row, self.config)
            except (OSError, EvidenceError) as error:
                troubles.append(f"not written: {error}")
        return msgspec.structs.replace(result, trouble="; ".join(troubles))


def judged(task: Task, answer: RunAnswer) -> tuple[Task, Verdict]:
    """The task, on the toolchain that really ran it, and what follows from what it did."""
    task = task.on(answer.toolchain)
    verdict = judge(task.article, task.snippet, task.expected, answer.outcome)
    if verdict.colour == "red" and answer.health_problem:
        reason = f"this machine is unwell: {answer.health_problem}"
        return task, Verdict(VerdictName.INCONCLUSIVE, reason)
    return task, verdict


def worth_preloading(config: Config, tasks: Iterable[Task]) -> tuple[str, ...]:
    """The modules of `run.preload` that are installed and that some snippet to be run asks for."""
    runs = [task for task in tasks if task.runs]
    text = "\n".join(task.snippet.source for task in runs)
    packages = runs[0].toolchain.packages if runs else {}
    return tuple(
        module
        for module, when in config.run.preload.items()
        if re.split("[.:]", module)[0] in packages and re.search(when, text)
    )
