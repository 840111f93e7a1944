"""What runs snippets: the seam between `verifying`, which judges, and the machines that run.

A *ground* knows which toolchains there are on the machines it stands for, and gives an *engine* for
one of them. The ground in this module is this machine; `kbtools.verification.ray` has another.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Protocol, Self

import msgspec

from kbtools.config import Config
from kbtools.outcome import Outcome
from kbtools.running import Executor, Run, Slots
from kbtools.running.controls import illness
from kbtools.running.executor import Sandbox
from kbtools.toolchains import declared
from kbtools.toolchains.declared import Environment
from kbtools.toolchains.model import Toolchain

Started = Callable[[tuple[int, ...]], None]
"""Told when a run begins, with the indices of its GPUs."""


class Answer(msgspec.Struct, frozen=True):
    """What a run did, and where."""

    outcome: Outcome
    toolchain: Toolchain | None = None
    """Of the machine that ran it; None: the one that was planned for."""
    place: object = None
    """The engine's own note of where that was."""


class Gone(Exception):
    """The machine that gave an answer can no longer be asked anything."""


class Wanted(msgspec.Struct, frozen=True):
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

    def run(self, run: Run, gpus: int, started: Started, *, alone: bool = False) -> Answer:
        """Runs one snippet on so many GPUs; waits for them, and for its end.

        One GPU may be shared with other snippets, unless this one is to be alone.
        """

    def illness(self, language: str, requires: str, gpus: int, answer: Answer) -> str:
        """Why the machine that gave an answer is unwell; empty when it is not.

        Raises:
            Gone: it cannot be asked, so that its answer is worth nothing.
        """


class Ground(Protocol):
    """Machines, and the toolchains on them."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...

    def places(self, words: str | None) -> tuple[Sequence[Environment], Sequence[str]]:
        """The environments that `--toolchain` names, and the declared ones that are not there."""

    def describe(self, place: Environment) -> Toolchain:
        """What an environment holds."""

    def engine(self, place: Environment, wanted: Wanted) -> Engine:
        """Something that runs snippets on an environment."""


class Local:
    """The engine of this machine: one executor, and its GPUs as slots."""

    def __init__(self, config: Config, python: str, wanted: Wanted) -> None:
        self.jobs = wanted.jobs or 2
        self.slots = Slots(wanted.gpus, config.run.share)
        self.executor = Executor(python, config.run, preload=wanted.preload, sandbox=wanted.sandbox)

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

    def run(self, run: Run, gpus: int, started: Started, *, alone: bool = False) -> Answer:
        """Runs one snippet, once there are slots for it."""
        with self.slots.take(gpus, alone=alone) as chosen:
            started(chosen)
            return Answer(self.executor.run(msgspec.structs.replace(run, gpus=chosen)))

    def illness(self, language: str, requires: str, gpus: int, answer: Answer) -> str:
        """Why this machine is unwell."""
        with self.slots.take(min(gpus, 1)) as chosen:
            return illness(self.executor, language, requires, chosen)


class Here:
    """The ground under our feet: this machine, and the toolchains that are built on it."""

    def __init__(self, config: Config) -> None:
        self.config = config

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def places(self, words: str | None) -> tuple[Sequence[Environment], Sequence[str]]:
        """The environments that `--toolchain` names, and the declared ones that are not built."""
        return declared.several(self.config, words)

    def describe(self, place: Environment) -> Toolchain:
        """Reads a toolchain off its interpreter."""
        return declared.describe(place)

    def engine(self, place: Environment, wanted: Wanted) -> Engine:
        """An executor."""
        return Local(self.config, place.python, wanted)
