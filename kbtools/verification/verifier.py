"""Plan, run, judge, record: the life of a snippet on one page."""

from __future__ import annotations

import datetime
import hashlib
import re
import shlex
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed

import msgspec

from kbtools import __version__
from kbtools.articles.model import SUFFIX, Article, Role, Snippet
from kbtools.config import Config, KbtoolsError
from kbtools.evidence import store
from kbtools.evidence.store import Row
from kbtools.evidence.verdicts import Expectation, Verdict, VerdictName, expect, judge
from kbtools.outcome import Outcome
from kbtools.running import Run
from kbtools.running.executor import REPRO, Sandbox
from kbtools.toolchains.model import Toolchain
from kbtools.verification.machines import Engine, EngineRequest, MachineLost, RunAnswer

OnTaskStart = Callable[["Task", tuple[int, ...]], None]
"""Called when the run of a task begins, with the indices of its GPUs."""

MACHINES = 4
"""How many may die, each before it could say if it is well, until a red answer is given up."""


class Task(msgspec.Struct, frozen=True):
    """A snippet to be verified on a toolchain, and what the article's claims imply there."""

    article: Article
    snippet: Snippet
    toolchain: Toolchain
    expected: Expectation
    name: str | None = None
    """Of the toolchain, where it has one."""

    def on(self, toolchain: Toolchain | None) -> Task:
        """The same snippet on the toolchain that it was run on, where that is another."""
        if toolchain is None or toolchain == self.toolchain:
            return self
        expected = expect(self.snippet, toolchain, self.name)
        return msgspec.structs.replace(self, toolchain=toolchain, expected=expected)


class Result(msgspec.Struct, frozen=True):
    """What came of a task."""

    task: Task
    verdict: Verdict
    outcome: Outcome | None = None
    """None where nothing was run."""
    remembered: bool = False
    """Whether the outcome is that of an earlier run on this machine."""
    trouble: str = ""
    """Why the outcome could not be written down."""


class ToolchainRun(msgspec.Struct, frozen=True):
    """What came of all tasks on one toolchain."""

    name: str | None
    """Its name in `toolchains.toml`, where it has one."""
    toolchain: Toolchain
    results: tuple[Result, ...]
    seconds: float
    """Wall time."""
    headline: tuple[str, ...] = ()
    """The distributions by which the toolchain is named."""

    @property
    def brief(self) -> str:
        """The toolchain in a few words."""
        return self.toolchain.brief(self.headline)

    @property
    def software(self) -> str:
        """The toolchain on a line, without its GPU."""
        return self.toolchain.software(self.headline)

    @property
    def label(self) -> str:
        """The toolchain on a line."""
        return self.toolchain.label(self.headline)

    @property
    def colours(self) -> set[str]:
        """The colours of the verdicts."""
        return {result.verdict.colour for result in self.results}

    @property
    def unsandboxed(self) -> str:
        """What of the sandbox its snippets ran without, and why; empty where they had all of it."""
        ran = [one.outcome for one in self.results if one.outcome and not one.remembered]
        return "; ".join(sorted({outcome.unsandboxed for outcome in ran} - {""}))


class RunOptions(msgspec.Struct, frozen=True):
    """How a run is made."""

    jobs: int | None = 2
    """Snippets at once; None: as many as there is room for."""
    rerun_remembered: bool = False
    """Run what is remembered, too."""
    record: bool = False
    """Write evidence, not only what this machine remembers."""
    spawn: bool = False
    """`--isolation spawn`: an interpreter for every snippet."""
    timeout: float | None = None
    """Seconds, instead of what configuration and fence say."""
    fail_fast: bool = False
    sandbox: Sandbox = "where allowed"


def plan(
    articles: Iterable[Article], toolchain: Toolchain, name: str | None, roles: Iterable[Role]
) -> tuple[Task, ...]:
    """Every snippet of these roles, with what is expected of it on the toolchain."""
    wanted = set(roles)
    return tuple(
        Task(article, snippet, toolchain, expect(snippet, toolchain, name), name)
        for article in articles
        for snippet in article.snippets
        if snippet.role in wanted and not article.matter.retired
    )


class Verifier:
    """Where the snippets of one toolchain are run; leaving it ends every process."""

    def __init__(
        self,
        config: Config,
        tasks: Iterable[Task],
        options: RunOptions,
        engine: Callable[[EngineRequest], Engine],
    ) -> None:
        self.config, self.options = config, options
        self.tasks = tuple(tasks)
        request = EngineRequest(
            runs=len(self.tasks),
            gpus=max((len(task.toolchain.gpus) for task in self.tasks), default=0),
            jobs=options.jobs,
            preload=() if options.spawn else worth_preloading(config, self.tasks),
            sandbox=options.sandbox,
        )
        self.engine = engine(request)
        self.helper = hashlib.sha256(REPRO.read_bytes()).hexdigest() if REPRO.exists() else ""

    def verify(self, started: OnTaskStart = lambda *_: None) -> Iterator[Result]:
        """Verifies every task, several at a time; yields each result as it comes.

        What finished before the caller stops asking (or presses Ctrl-C) is remembered and recorded.
        """
        with self.engine, ThreadPoolExecutor(self.engine.jobs) as pool:
            futures = [pool.submit(self.verify_snippet, task, started) for task in self.tasks]
            try:
                for future in as_completed(futures):
                    result = future.result()
                    yield result
                    if self.options.fail_fast and result.verdict.colour == "red":
                        return
            finally:
                pool.shutdown(wait=False, cancel_futures=True)
                self.engine.close()

    def verify_snippet(self, task: Task, started: OnTaskStart) -> Result:
        """The life of one snippet, from its claim to its verdict."""
        if task.expected.what in ("skip", "unknown"):
            return Result(task, judge(task.article, task.snippet, task.expected, Outcome("lost")))
        if not self.options.rerun_remembered and (row := self.remembered(task)):
            verdict = judge(task.article, task.snippet, task.expected, row.outcome)
            # a red one is always run again: what is wrong may have been the machine
            if verdict.colour == "green":
                return self.written(Result(task, verdict, row.outcome, remembered=True), row)
        run = self.run_of(task)
        answer = self.run(task, run, started, spawn=self.options.spawn)
        task, verdict = judged(task, answer)
        if verdict.colour == "red":
            task, verdict, answer = self.confirm(task, run, started)
        result = Result(task, verdict, answer.outcome)
        if verdict.name is VerdictName.INCONCLUSIVE:
            return result
        return self.written(result, self.row(task, answer.outcome))

    def confirm(
        self, task: Task, run: Run, started: OnTaskStart
    ) -> tuple[Task, Verdict, RunAnswer]:
        """A second opinion on a red one: a fresh process, on a machine that is well.

        A machine that dies before it can say so is not the snippet's fault: another is asked.
        """
        needs = (task.snippet.language, task.snippet.keys.requires, task.snippet.gpus)
        why = ""
        for _ in range(MACHINES):
            answer = self.run(task, run, started, spawn=True)
            task, verdict = judged(task, answer)
            if verdict.colour != "red":
                return task, verdict, answer
            try:
                ill = self.engine.health_problem(*needs, answer)
            except MachineLost as error:
                why = str(error)
                continue
            if ill:
                verdict = Verdict(VerdictName.INCONCLUSIVE, f"this machine is unwell: {ill}")
            return task, verdict, answer
        message = f"{MACHINES} machines died before they could say if they are well: {why}"
        return task, Verdict(VerdictName.INCONCLUSIVE, message), answer

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
            tool=tuple(shlex.split(snippet.keys.tool or "")),
            compile_only=snippet.keys.requires == "nvcc",
            network=snippet.keys.net is not None,
        )

    def run(
        self,
        task: Task,
        run: Run,
        started: OnTaskStart,
        *,
        spawn: bool,
    ) -> RunAnswer:
        """Runs a task's snippet once, on GPUs of its own where it asks for some."""
        run = msgspec.structs.replace(run, spawn=spawn)
        snippet = task.snippet
        return self.engine.run(
            run, snippet.gpus, lambda gpus: started(task, gpus), alone=snippet.alone
        )

    def limit(self, snippet: Snippet) -> float:
        """Seconds that a snippet may take."""
        return self.options.timeout or snippet.keys.timeout or self.config.run.timeout

    def remembered(self, task: Task) -> Row | None:
        """The row of an earlier run of the same code, helper and toolchain on this machine."""
        try:
            rows = store.read(self.config.memory, task.article.id)
        except KbtoolsError:  # memory only ever saves a run: begin it anew
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
            schema=store.SCHEMA,
            snippet=task.snippet.id,
            code=task.snippet.digest,
            toolchain=task.toolchain,
            outcome=outcome,
            when=datetime.datetime.now(datetime.UTC).replace(microsecond=0),
            kbtools=__version__,
            helper=self.helper_of(task),
        )

    def written(self, result: Result, row: Row) -> Result:
        """Writes a row down, remembered and (if asked) as evidence; says so if it could not."""
        folders = [self.config.memory] if not result.remembered else []
        folders += [self.config.evidence] if self.options.record else []
        troubles = []
        for folder in folders:
            try:
                store.record(folder, result.task.article.id, row, self.config)
            except (OSError, KbtoolsError) as error:
                troubles.append(f"not written: {error}")
        return msgspec.structs.replace(result, trouble="; ".join(troubles))


def judged(task: Task, answer: RunAnswer) -> tuple[Task, Verdict]:
    """The task, on the toolchain that really ran it, and what follows from what it did."""
    task = task.on(answer.toolchain)
    return task, judge(task.article, task.snippet, task.expected, answer.outcome)


def worth_preloading(config: Config, tasks: Iterable[Task]) -> tuple[str, ...]:
    """The modules of `run.preload` that are installed and that some snippet to be run asks for."""
    runs = [task for task in tasks if task.expected.what in ("fails", "passes")]
    text = "\n".join(task.snippet.source for task in runs)
    packages = runs[0].toolchain.packages if runs else {}
    return tuple(
        module
        for module, when in config.run.preload.items()
        if re.split("[.:]", module)[0] in packages and re.search(when, text)
    )
