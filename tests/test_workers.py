"""A run on a machine whose GPUs are imagined: who runs at once, and what ends it early."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Self

import pytest
from bases import Base, fence

from kbtools import config
from kbtools.articles.model import Role
from kbtools.checks.base import load_base, readable_articles
from kbtools.outcome import Outcome
from kbtools.running import Run
from kbtools.running.zygote_process import ZygoteFailed
from kbtools.toolchains.model import Gpu, Toolchain
from kbtools.verification.machines import EngineRequest, OnStart, RunAnswer
from kbtools.verification.model import Result, RunOptions, Task, plan
from kbtools.verification.schedule import Capacity
from kbtools.verification.verifier import Verifier

LONG = 30.0
"""Seconds after which a test fails that waits for a run to begin or to end."""


class ImaginedEngine:
    """Runs nothing: a snippet begins when it is asked for, and ends as the test says."""

    def __init__(self, capacity: Capacity) -> None:
        self.capacity = capacity
        self.forks_prepared = threading.Event()
        self.forks_prepared.set()
        self.trouble: Exception | None = None
        self.running: dict[str, tuple[int, ...]] = {}
        """Last line of a snippet → its GPUs."""
        self.begun: list[tuple[str, tuple[int, ...], bool]] = []
        """The same, and whether a control was asked for, of every run in their order."""
        self.changed = threading.Condition()
        self.closed = False
        self._ends: dict[str, Outcome] = {}
        self.end_all_as: Outcome | None = None

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
        """Ends every run as `lost`."""
        with self.changed:
            self.closed = True
            self.changed.notify_all()

    def prepare_forks(self, *, stored: bool = False) -> None:
        """Waits until the test lets it go on."""
        assert self.forks_prepared.wait(LONG)
        if self.trouble:
            raise self.trouble

    def run(
        self,
        run: Run,
        gpus: tuple[int, ...],
        on_start: OnStart,
        *,
        alone: bool = False,
        control: bool = False,
    ) -> RunAnswer:
        """Runs until the test ends it."""
        on_start(gpus)
        name = run.source.strip().splitlines()[-1]
        with self.changed:
            self.running[name] = gpus
            self.begun.append((name, gpus, control))
            self.changed.notify_all()
            ended = self.changed.wait_for(
                lambda: self.closed or self.end_all_as or name in self._ends, LONG
            )
            assert ended, f"{name} was not ended"
            del self.running[name]
            lost = Outcome("lost", message="cancelled")
            return RunAnswer(self._ends.pop(name, self.end_all_as or lost))

    def end(self, name: str, outcome: Outcome | None = None) -> None:
        """Ends a run."""
        with self.changed:
            self._ends[name] = outcome or PASSED
            self.changed.notify_all()

    def wait_until_running(self, **expected: tuple[int, ...]) -> None:
        """Waits until these snippets run, on these GPUs, and no other."""
        with self.changed:
            in_time = self.changed.wait_for(lambda: self.running == expected, LONG)
            assert in_time, f"running: {self.running}, not {expected}"


PASSED = Outcome("passed", exit=0, isolation="fork")
FAILED = Outcome("failed", exit=1, exceptions=("ValueError",), message="no", isolation="fork")


def planned(base: Base, gpus: int, **requires: str) -> tuple[Task, ...]:
    """A task for each name → what it requires, on a machine with so many GPUs."""
    base.article(*(fence(f"python fix id={n} requires={r}", n) for n, r in requires.items()))
    articles, _ = readable_articles(load_base(config.find(base.root)))
    toolchain = Toolchain("3.11.7", {}, gpus=(Gpu("NVIDIA H200", "9.0"),) * gpus, driver="580.1")
    return plan(articles, toolchain, None, Role)


@contextmanager
def verifying(
    base: Base, engine: ImaginedEngine, tasks: tuple[Task, ...], *, fail_fast: bool = False
) -> Iterator[Callable[[], list[Result]]]:
    """Verifies in a thread; the function waits for its end and gives the results."""
    results: list[Result] = []
    errors: list[BaseException] = []

    def create(request: EngineRequest) -> ImaginedEngine:
        return engine

    def verify() -> None:
        options = RunOptions(fail_fast=fail_fast, rerun_remembered=True)
        try:
            with Verifier(config.find(base.root), tasks, options, create) as verifier:
                results.extend(verifier.verify())
        except BaseException as error:
            errors.append(error)

    def finished() -> list[Result]:
        thread.join(LONG)
        assert not thread.is_alive()
        for error in errors:
            raise error
        return results

    thread = threading.Thread(target=verify, daemon=True)
    thread.start()
    try:
        yield finished
    finally:
        engine.close()
        thread.join(LONG)


def test_who_waits_for_gpus_holds_no_worker(base: Base) -> None:
    """With two jobs, two snippets that want both GPUs leave one job to those that want none."""
    tasks = planned(base, 2, a="gpus:2", b="gpus:2", c="cpu", d="cpu", e="gpu")
    engine = ImaginedEngine(Capacity(jobs=2, gpus=2, share=1))
    with verifying(base, engine, tasks) as finished:
        engine.wait_until_running(a=(0, 1), c=())
        engine.end("c")
        engine.wait_until_running(a=(0, 1), d=())
        engine.end("a")
        engine.wait_until_running(b=(0, 1), d=())
        engine.end("d")
        engine.end("b")
        engine.wait_until_running(e=(0,))
        engine.end("e")
        assert {result.verdict.name for result in finished()} == {"holds"}
    assert len(engine.begun) == 5


def test_a_confirmation_has_the_same_gpus(base: Base) -> None:
    """A red verdict is confirmed on the GPUs of the first run, and nobody gets between."""
    tasks = planned(base, 2, a="gpus:1", b="gpus:1", c="gpus:1")
    engine = ImaginedEngine(Capacity(jobs=3, gpus=2))
    with verifying(base, engine, tasks) as finished:
        engine.wait_until_running(a=(0,), b=(1,))
        engine.end("b", FAILED)
        with engine.changed:
            assert engine.changed.wait_for(lambda: ("b", (1,), True) in engine.begun, LONG)
        engine.wait_until_running(a=(0,), b=(1,))
        engine.end_all_as = PASSED
        engine.end("a")
        assert len(finished()) == 3
    assert [name for name, _, _ in engine.begun] == ["a", "b", "b", "c"]


def test_the_first_red_one_ends_the_run(base: Base) -> None:
    """With `--fail-fast` what runs is ended, and what waits is never begun."""
    tasks = planned(base, 1, a="gpus:1", b="gpus:1", c="cpu")
    engine = ImaginedEngine(Capacity(jobs=2, gpus=1))
    with verifying(base, engine, tasks, fail_fast=True) as finished:
        engine.wait_until_running(a=(0,), c=())
        engine.end("c", FAILED)
        with engine.changed:
            assert engine.changed.wait_for(lambda: ("c", (), True) in engine.begun, LONG)
        engine.end("c", FAILED)
        [result] = finished()
    assert (result.task.snippet.id, result.verdict.name) == ("c", "broken")
    assert "b" not in [name for name, _, _ in engine.begun]


def test_a_lost_run_frees_what_it_held(base: Base) -> None:
    """A snippet whose run is lost has a result, and its GPU goes to the next."""
    tasks = planned(base, 1, a="gpus:1", b="gpus:1")
    engine = ImaginedEngine(Capacity(jobs=1, gpus=1))
    with verifying(base, engine, tasks) as finished:
        engine.wait_until_running(a=(0,))
        engine.end("a", Outcome("lost", message="the zygote died"))
        engine.wait_until_running(b=(0,))
        engine.end("b")
        verdicts = {result.task.snippet.id: result.verdict.name for result in finished()}
    assert verdicts == {"a": "inconclusive", "b": "holds"}


def test_forks_begin_when_they_are_prepared(base: Base) -> None:
    """Meanwhile the fresh interpreters run."""
    base.article(fence("python fix id=a", "a"), fence("python fix id=b env='X=1'", "b"))
    articles, _ = readable_articles(load_base(config.find(base.root)))
    tasks = plan(articles, Toolchain("3.11.7", {}), None, Role)
    engine = ImaginedEngine(Capacity(jobs=2))
    engine.forks_prepared.clear()
    with verifying(base, engine, tasks) as finished:
        engine.wait_until_running(b=())
        engine.forks_prepared.set()
        engine.wait_until_running(a=(), b=())
        engine.end("a")
        engine.end("b")
        assert len(finished()) == 2


def test_an_interpreter_that_does_not_start(base: Base) -> None:
    """The run ends with the reason, whatever waits for it."""
    tasks = planned(base, 0, a="cpu", b="cpu")
    engine = ImaginedEngine(Capacity(jobs=2))
    engine.trouble = ZygoteFailed("python could not start")
    with (
        verifying(base, engine, tasks) as finished,
        pytest.raises(ZygoteFailed, match="could not start"),
    ):
        finished()
    assert engine.begun == []
