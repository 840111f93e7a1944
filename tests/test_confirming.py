"""A second opinion on a red verdict: from a machine that is well, and still there."""

from __future__ import annotations

import pytest
from bases import Base, fence

from kbtools import config
from kbtools.articles.model import Role
from kbtools.checks.base import load_base, readable_articles
from kbtools.evidence.verdicts import VerdictName
from kbtools.running import Run
from kbtools.toolchains import environments
from kbtools.verification.machines import (
    EngineRequest,
    LocalEngine,
    MachineLost,
    OnStart,
    RunAnswer,
)
from kbtools.verification.verifier import MACHINES, Result, RunOptions, Verifier, plan


class Mortal(LocalEngine):
    """The engine of this machine; it dies so many times before it can say how it is."""

    def __init__(
        self, base: config.Config, python: str, request: EngineRequest, deaths: int
    ) -> None:
        super().__init__(base, python, request)
        self.deaths, self.runs = deaths, 0

    def run(self, run: Run, gpus: int, started: OnStart, *, alone: bool = False) -> RunAnswer:
        """Runs it, and counts."""
        self.runs += 1
        return super().run(run, gpus, started, alone=alone)

    def health_problem(self, language: str, requires: str, gpus: int, answer: RunAnswer) -> str:
        """Why this machine is unwell, if it still can tell."""
        if self.deaths:
            self.deaths -= 1
            raise MachineLost("unplugged")
        return super().health_problem(language, requires, gpus, answer)


def verified(base: Base, deaths: int) -> tuple[Result, int]:
    """What comes of the one snippet of a base, and how many runs that took."""
    given = config.find(base.root)
    place = environments.find_environment(given, None)
    articles, _ = readable_articles(load_base(given))
    tasks = plan(articles, environments.toolchain_of(place), None, Role)
    engines: list[Mortal] = []

    def engine(request: EngineRequest) -> Mortal:
        engines.append(Mortal(given, place.python, request, deaths))
        return engines[-1]

    [result] = Verifier(given, tasks, RunOptions(), engine).verify()
    return result, engines[0].runs


@pytest.mark.parametrize("deaths", [0, 1, MACHINES - 1])
def test_another_machine_is_asked(base: Base, deaths: int) -> None:
    """A machine that dies before it could say that it is well is not taken at its word."""
    base.article(fence("python fix", "assert False, 'never'"))
    result, runs = verified(base, deaths)
    assert result.verdict.name is VerdictName.BROKEN
    assert runs == 2 + deaths


def test_no_machine_is_left(base: Base) -> None:
    """Where they all die, that is no verdict about the snippet."""
    base.article(fence("python fix", "assert False, 'never'"))
    result, runs = verified(base, MACHINES)
    assert result.verdict.name is VerdictName.INCONCLUSIVE
    assert result.verdict.reason.endswith("before they could say if they are well: unplugged")
    assert runs == 1 + MACHINES
