"""What runs snippets: the interface between the verifier, which judges, and the machines that run.

A *machine pool* lists the toolchains of its machines and creates an *engine* for one of them. The
pool in this module is the local machine; `kbtools.verification.ray` has a cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import Protocol, Self

import msgspec

from kbtools.config import Config
from kbtools.outcome import Outcome
from kbtools.running import Executor, Run
from kbtools.running.controls import health_problem
from kbtools.running.executor import Sandbox
from kbtools.running.kept import KeepError
from kbtools.running.toolchain_store import StoreOrder
from kbtools.toolchains import environments
from kbtools.toolchains.environments import Environment
from kbtools.toolchains.model import Toolchain
from kbtools.verification.schedule import Capacity

OnStart = Callable[[tuple[int, ...]], None]
"""Called when a run begins, with the indices of its GPUs."""


class RunAnswer(msgspec.Struct, frozen=True):
    """What a run did, and what its machine says of itself."""

    outcome: Outcome
    toolchain: Toolchain | None = None
    """Of the machine that ran it; None: the one that was planned for."""
    health_problem: str = ""
    """Why that machine is unwell, if a control was asked for; empty if it is well."""


class EngineRequest(msgspec.Struct, frozen=True):
    """What an engine is created for."""

    runs: int
    """How many snippets, at most."""
    gpus: int = 0
    """GPUs of the machine that the snippets were planned for."""
    jobs: int | None = None
    """How many at once; None: as many as there is room for."""
    preload: tuple[str, ...] = ()
    """Modules that a zygote imports before it forks."""
    stored_preload: tuple[str, ...] = ()
    """The same for snippets that use the store, if one is asked for."""
    sandbox: Sandbox = "where allowed"
    store: StoreOrder | None = None
    """What is made once for all snippets, on this machine; another machine goes without."""


class Engine(Protocol):
    """Runs snippets on one toolchain; `run` may be called from many threads at once."""

    capacity: Capacity
    """What it has room for: whoever calls `run` asks for no more at once."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...

    def close(self) -> None:
        """Ends every run, each of which is then `lost`, and every process; may be called twice."""

    def prepare_forks(self, *, stored: bool = False) -> None:
        """Makes ready what a run that forks would otherwise wait for.

        Args:
            stored: Whether it uses the toolchain's store.

        Raises:
            ZygoteFailed: the toolchain's interpreter cannot be started.
        """

    def run(
        self,
        run: Run,
        gpus: tuple[int, ...],
        on_start: OnStart,
        *,
        alone: bool = False,
        control: bool = False,
    ) -> RunAnswer:
        """Runs one snippet, and waits for its end.

        A run that is *lost* has shown nothing and is made again, in two places. `Executor.run`
        makes it once more when the zygote or its keeper died, as when the kernel kills it for
        memory. An engine with several machines makes it on another one when a worker or its machine
        died, or when the executor there lost it twice. The verifier repeats a run for another
        reason: a claim is contradicted only if an interpreter of its own contradicts it, too.

        Args:
            run: What is run.
            gpus: Those that it gets. An engine of several machines chooses as many of its own.
            on_start: Called when the run begins, and again for each time it is made again.
            alone: Whether no other snippet may share its GPU meanwhile.
            control: Whether a known-good program of its kind is run after it, in the same place.

        Returns:
            The outcome; where `control` is set, also whether the machine is well.

        Raises:
            ZygoteFailed: the toolchain's interpreter cannot be started.
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
        """The environments that `--toolchain` names, and the declared ones that are missing."""

    def describe(self, environment: Environment) -> Toolchain:
        """What an environment holds."""

    def engine(self, environment: Environment, request: EngineRequest) -> Engine:
        """Creates an engine that runs snippets on an environment."""


class LocalEngine:
    """The engine of this machine: one executor."""

    def __init__(self, config: Config, python: str, request: EngineRequest) -> None:
        jobs = request.jobs or 2
        # with one job at a time the user wants one at a time
        sleepers = jobs if jobs > 1 else 0
        self.capacity = Capacity(jobs, request.gpus, config.run.share, sleepers)
        self.executor = Executor(
            python,
            config.run,
            preload=request.preload,
            sandbox=request.sandbox,
            store=request.store,
            stored_preload=request.stored_preload,
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

    def prepare_forks(self, *, stored: bool = False) -> None:
        """Starts a zygote that preloads, for snippets that use the store or for the others."""
        self.executor.prepare_forks(stored=stored)

    def run(
        self,
        run: Run,
        gpus: tuple[int, ...],
        on_start: OnStart,
        *,
        alone: bool = False,
        control: bool = False,
    ) -> RunAnswer:
        """Runs one snippet on these GPUs."""
        on_start(gpus)
        return run_locally(self.executor, msgspec.structs.replace(run, gpus=gpus), control=control)


class ThisMachine:
    """The pool of one machine, the local one, and the toolchains that are built on it."""

    def __init__(self, config: Config, *, describes_own: bool = False) -> None:
        """Starts no snippet.

        Args:
            config: Of the knowledge base.
            describes_own: Whether to begin at once to read off the toolchain of the interpreter
                that runs kbtools, beside what the caller does next.
        """
        self.config = config
        self._described: dict[str, Future[Toolchain]] = {}
        if describes_own:
            own = environments.find_environment(config, None)
            thread = ThreadPoolExecutor(1)
            self._described[own.python] = thread.submit(environments.toolchain_of, own)
            thread.shutdown(wait=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def toolchains(self, selection: str | None) -> tuple[Sequence[Environment], Sequence[str]]:
        """The environments that `--toolchain` names, and the declared ones that are not built."""
        return environments.select_environments(self.config, selection)

    def describe(self, environment: Environment) -> Toolchain:
        """Reads a toolchain off its interpreter."""
        if environment.python in self._described:
            return self._described[environment.python].result()
        return environments.toolchain_of(environment)

    def engine(self, environment: Environment, request: EngineRequest) -> Engine:
        """Creates an executor of the environment's interpreter."""
        return LocalEngine(self.config, environment.python, request)


def run_locally(executor: Executor, run: Run, *, control: bool) -> RunAnswer:
    """Runs a snippet with an executor of this machine, on the GPUs that the run names.

    Args:
        executor: Of the toolchain.
        run: What is run.
        control: Whether a known-good program is run after it.
    """
    try:
        outcome = executor.run(run)
    except KeepError as error:  # one folder that cannot be written ends no other run
        outcome = Outcome("lost", message=str(error))
    if not control or outcome.status == "lost":
        return RunAnswer(outcome)
    return RunAnswer(outcome, health_problem=health_problem(executor, run))
