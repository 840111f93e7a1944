"""A red verdict is confirmed: by a second run in a new interpreter, and by a control."""

from __future__ import annotations

import msgspec
import pytest
from bases import Base, fence

from kbtools import config
from kbtools.articles.model import Role
from kbtools.checks.base import load_base, readable_articles
from kbtools.evidence.verdicts import VerdictName
from kbtools.running import Run
from kbtools.toolchains import environments
from kbtools.verification.machines import EngineRequest, LocalEngine, OnStart, RunAnswer
from kbtools.verification.model import Result, RunOptions, plan
from kbtools.verification.verifier import Verifier


class CountingEngine(LocalEngine):
    """The engine of this machine, which notes its runs and may say that it is unwell."""

    def __init__(
        self, base: config.Config, python: str, request: EngineRequest, *, problem: str
    ) -> None:
        super().__init__(base, python, request)
        self.problem = problem
        self.runs: list[tuple[str | None, bool]] = []

    def run(
        self,
        run: Run,
        gpus: tuple[int, ...],
        on_start: OnStart,
        *,
        alone: bool = False,
        control: bool = False,
    ) -> RunAnswer:
        """Runs a snippet, and notes its isolation and whether a control was asked for."""
        self.runs.append((run.isolation, control))
        answer = super().run(run, gpus, on_start, alone=alone, control=control)
        return msgspec.structs.replace(answer, health_problem=self.problem if control else "")


def verified(base: Base, *, problem: str = "") -> tuple[Result, list[tuple[str | None, bool]]]:
    """The result of the one snippet of a base, and the runs that it took."""
    configuration = config.find(base.root)
    environment = environments.find_environment(configuration, None)
    articles, _ = readable_articles(load_base(configuration))
    tasks = plan(articles, environments.toolchain_of(environment), None, Role)
    engines: list[CountingEngine] = []

    def engine(request: EngineRequest) -> CountingEngine:
        engines.append(CountingEngine(configuration, environment.python, request, problem=problem))
        return engines[-1]

    with Verifier(configuration, tasks, RunOptions(), engine) as verifier:
        [result] = verifier.verify()
    return result, engines[0].runs


def test_green_is_a_single_run(base: Base) -> None:
    """A claim that stands is not run again, and no control is run for it."""
    base.article(fence("python fix", "assert True"))
    result, runs = verified(base)
    assert result.verdict.name is VerdictName.HOLDS
    assert runs == [("fork", False)]


def test_red_is_two_runs(base: Base) -> None:
    """A contradicted claim is run once more in an interpreter of its own, with a control."""
    base.article(fence("python fix", "assert False, 'never'"))
    result, runs = verified(base)
    assert result.verdict.name is VerdictName.BROKEN
    assert runs == [("fork", False), ("spawn", True)]


def test_a_machine_that_is_unwell(base: Base) -> None:
    """Where the control fails, the run says nothing of the claim and is not remembered."""
    base.article(fence("python fix", "assert False, 'never'"))
    result, _ = verified(base, problem="no memory")
    assert result.verdict.name is VerdictName.INCONCLUSIVE
    assert result.verdict.reason == "this machine is unwell: no memory"
    assert not (base.root / ".kbtools" / "memory").exists()


def test_a_snippet_that_is_not_run(base: Base) -> None:
    """A snippet that this toolchain cannot run has a verdict and no outcome."""
    (base.root / "toolchains.toml").write_text('[elsewhere]\npython = "3.11"\n', "utf-8")
    base.article(fence("python fix toolchain=elsewhere", "assert False"))
    result, runs = verified(base)
    assert (result.verdict.name, result.outcome, runs) == (VerdictName.SKIPPED, None, [])


def test_leaving_ends_every_process(base: Base, monkeypatch: pytest.MonkeyPatch) -> None:
    """Leaving the verifier ends its zygote, whether or not every result was asked for."""
    monkeypatch.setenv("TMPDIR", str(base.temporary))
    monkeypatch.setattr("tempfile.tempdir", None)
    base.article(*(fence(f"python fix id=f{i}", f"assert {i} < 9") for i in range(3)))
    configuration = config.find(base.root)
    environment = environments.find_environment(configuration, None)
    articles, _ = readable_articles(load_base(configuration))
    tasks = plan(articles, environments.toolchain_of(environment), None, Role)

    def engine(request: EngineRequest) -> LocalEngine:
        return LocalEngine(configuration, environment.python, request)

    with Verifier(configuration, tasks, RunOptions(), engine) as verifier:
        assert next(verifier.verify()).verdict.name is VerdictName.HOLDS
    assert base.running_after(10) == []
    assert list(base.temporary.iterdir()) == []
