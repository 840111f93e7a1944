"""What runs snippets: the seam between `verifying`, which judges, and the machines that run.

A *pool* knows which toolchains there are on the machines it stands for, and gives an *engine* for
one of them. The pool in this module is this machine; `kbtools.verification.ray` has another.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Protocol, Self

import msgspec

from kbtools.config import Config
from kbtools.outcome import Outcome
from kbtools.running import Executor, Run, Slots
from kbtools.running.controls import health_problem
from kbtools.running.executor import Sandbox
from kbtools.toolchains import environments
from kbtools.toolchains.environments import Environment
from kbtools.toolchains.model import Toolchain

OnStart = Callable[[tuple[int, ...]], None]
"""Told when a run begins, with the indices of its GPUs."""


class RunAnswer(msgspec.Struct, frozen=True):
    """What a run did, and where."""

    outcome: Outcome
    toolchain: Toolchain | None = None
    """Of the machine that ran it; None: the one that was planned for."""
    worker: object = None
    """The engine's own note of where that was."""


class MachineLost(Exception):
    """The machine that gave an answer can no longer be asked anything."""


class EngineRequest(msgspec.Struct, frozen=True):
    """What an engine is asked for."""

    runs: int
    """How many snippets, at most."""
    gpus: int = 0
    """GPUs of the machine that the snippets were planned for."""
    jobs: int | None = None
    """How many at once; None: as many as there is room for."""
    preload: tuple[str, ...] = ()
    sandbox: Sandbox = "where allowed"


class Engine(Protocol):
    """Runs snippets on one toolchain; `run` may be called from `jobs` threads at once."""

    jobs: int

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...

    def close(self) -> None:
        """Ends every run, each of which is then `lost`, and every process; may be called twice."""

    def run(self, run: Run, gpus: int, started: OnStart, *, alone: bool = False) -> RunAnswer:
        """Runs one snippet on so many GPUs; waits for them, and for its end.

        One GPU may be shared with other snippets, unless this one is to be alone.
        """

    def health_problem(self, language: str, requires: str, gpus: int, answer: RunAnswer) -> str:
        """Why the machine that gave an answer is unwell; empty when it is not.

        Raises:
            MachineLost: it cannot be asked, so that its answer is worth nothing.
        """


class MachinePool(Protocol):
    """Machines, and the toolchains on them."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...

    def toolchains(self, selection: str | None) -> tuple[Sequence[Environment], Sequence[str]]:
        """The environments that `--toolchain` names, and the declared ones that are not there."""

    def describe(self, environment: Environment) -> Toolchain:
        """What an environment holds."""

    def engine(self, environment: Environment, request: EngineRequest) -> Engine:
        """Something that runs snippets on an environment."""


class LocalEngine:
    """The engine of this machine: one executor, and its GPUs as slots."""

    def __init__(self, config: Config, python: str, request: EngineRequest) -> None:
        self.jobs = request.jobs or 2
        self.slots = Slots(request.gpus, config.run.share)
        self.executor = Executor(
            python, config.run, preload=request.preload, sandbox=request.sandbox
        )

    def __enter__(self) -> Self:
        self.executor.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Ends every run, and the zygote."""
        self.executor.close()

    def run(self, run: Run, gpus: int, started: OnStart, *, alone: bool = False) -> RunAnswer:
        """Runs one snippet, once there are slots for it."""
        with self.slots.take(gpus, alone=alone) as chosen:
            started(chosen)
            return RunAnswer(self.executor.run(msgspec.structs.replace(run, gpus=chosen)))

    def health_problem(self, language: str, requires: str, gpus: int, answer: RunAnswer) -> str:
        """Why this machine is unwell."""
        with self.slots.take(min(gpus, 1)) as chosen:
            return health_problem(self.executor, language, requires, chosen)


class ThisMachine:
    """The pool under our feet: this machine, and the toolchains that are built on it."""

    def __init__(self, config: Config) -> None:
        self.config = config

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def toolchains(self, selection: str | None) -> tuple[Sequence[Environment], Sequence[str]]:
        """The environments that `--toolchain` names, and the declared ones that are not built."""
        return environments.select_environments(self.config, selection)

    def describe(self, environment: Environment) -> Toolchain:
        """Reads a toolchain off its interpreter."""
        return environments.toolchain_of(environment)

    def engine(self, environment: Environment, request: EngineRequest) -> Engine:
        """An executor."""
        return LocalEngine(self.config, environment.python, request)
