"""What runs on the machines of a cluster: an executor, and so a zygote, inside a Ray actor."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import msgspec
import ray

from kbtools.config import Config
from kbtools.outcome import Outcome
from kbtools.running import Executor, Run
from kbtools.running.controls import health_problem
from kbtools.toolchains import declared, environments
from kbtools.toolchains.environments import Environment
from kbtools.toolchains.model import Toolchain
from kbtools.verification.machines import EngineRequest


class Order(msgspec.Struct, frozen=True):
    """A toolchain as the driver names it; each machine finds it at a place of its own."""

    config: Config
    word: str | None
    """As given to `--toolchain`; None: the interpreter that runs Ray on that machine."""
    declared: str
    """The text of `toolchains.toml`."""
    folder: str | None
    """The driver's folder of environments, for machines that name none."""


class Ready(msgspec.Struct, frozen=True):
    """What a worker says of itself."""

    toolchain: Toolchain
    node: str
    gpus: tuple[int, ...]


def found(order: Order) -> Environment:
    """The environment on this machine.

    Raises:
        KbtoolsError: it is not here, or not as it is declared.
    """
    if order.folder:
        os.environ.setdefault(environments.FOLDER, order.folder)
    config, file = order.config, order.config.root / declared.FILE
    try:
        same = file.read_text("utf-8") == order.declared
    except OSError:
        same = not order.declared
    if same:  # the same machine, or a file system that all share
        return environments.find_environment(config, order.word)
    with tempfile.TemporaryDirectory(prefix="kbtools-") as root:
        (Path(root) / declared.FILE).write_text(order.declared, "utf-8")
        found = environments.find_environment(
            msgspec.structs.replace(config, root=Path(root)), order.word
        )
    return Environment(config, found.python, found.name)


def describe(order: Order) -> Toolchain:
    """What the environment on this machine holds."""
    return environments.toolchain_of(found(order))


class Worker:
    """One zygote on one machine, and the GPUs that Ray gave it. Methods are called remotely."""

    def __init__(self, order: Order, request: EngineRequest) -> None:
        self.order, self.request = order, request
        self.gpus = tuple(int(gpu) for gpu in ray.get_gpu_ids())
        self.executor: Executor | None = None

    def ready(self) -> Ready:
        """Finds the toolchain and makes room for runs.

        Raises:
            KbtoolsError: the toolchain is not here.
        """
        place = found(self.order)
        self.executor = Executor(
            place.python,
            self.order.config.run,
            preload=self.request.preload,
            sandbox=self.request.sandbox,
        ).__enter__()
        node = ray.get_runtime_context().get_node_id()
        return Ready(environments.toolchain_of(place), node, self.gpus)

    def run(self, run: Run) -> Outcome:
        """Runs one snippet."""
        assert self.executor is not None
        return self.executor.run(msgspec.structs.replace(run, gpus=self.gpus))

    def health_problem(self, language: str, requires: str) -> str:
        """Why this machine is unwell; empty when it is not."""
        assert self.executor is not None
        return health_problem(self.executor, language, requires, self.gpus[:1])

    def close(self) -> None:
        """Ends every run, and the zygote."""
        if self.executor:
            self.executor.close()
