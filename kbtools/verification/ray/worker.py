"""What runs on the machines of a cluster: an executor, and so a zygote, inside a Ray actor."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import msgspec
import ray

from kbtools.config import Config
from kbtools.running import Executor, Run
from kbtools.toolchains import declared, environments
from kbtools.toolchains.environments import Environment
from kbtools.toolchains.model import Toolchain
from kbtools.verification.machines import EngineRequest, RunAnswer, run_locally


class Order(msgspec.Struct, frozen=True):
    """A toolchain as the driver names it; each machine has it in a folder of its own."""

    config: Config
    selector: str | None
    """As given to `--toolchain`; None: the interpreter that runs Ray on that machine."""
    declarations: str
    """The text of `toolchains.toml`."""
    folder: str | None
    """The driver's folder of environments, for machines that name none."""


class Ready(msgspec.Struct, frozen=True):
    """What a worker says of itself."""

    toolchain: Toolchain
    node: str
    gpus: tuple[int, ...]


def environment_of(order: Order) -> Environment:
    """The environment on this machine.

    Raises:
        DeclarationError: `toolchains.toml` cannot be read.
        UnknownToolchain: the order names none.
        EnvironmentNotReady: it is not built here, or not as it is declared.
    """
    if order.folder:
        os.environ.setdefault(environments.FOLDER, order.folder)
    config, file = order.config, order.config.root / declared.FILE
    try:
        is_same = file.read_text("utf-8") == order.declarations
    except OSError:
        is_same = not order.declarations
    if is_same:  # the driver's machine, or a file system that all machines share
        return environments.find_environment(config, order.selector)
    with tempfile.TemporaryDirectory(prefix="kbtools-") as root:
        (Path(root) / declared.FILE).write_text(order.declarations, "utf-8")
        elsewhere = msgspec.structs.replace(config, root=Path(root))
        environment = environments.find_environment(elsewhere, order.selector)
    return Environment(config, environment.python, environment.name)


def describe(order: Order) -> Toolchain:
    """What the environment on this machine holds."""
    return environments.toolchain_of(environment_of(order))


class Worker:
    """One zygote on one machine, and the GPUs that Ray gave it. Methods are called remotely."""

    def __init__(self, order: Order, request: EngineRequest) -> None:
        self.order, self.request = order, request
        self.gpus = tuple(int(gpu) for gpu in ray.get_gpu_ids())
        self.executor: Executor | None = None

    def ready(self) -> Ready:
        """Finds the toolchain and makes room for runs.

        Raises:
            DeclarationError, UnknownToolchain, EnvironmentNotReady: the toolchain is not here.
        """
        environment = environment_of(self.order)
        self.executor = Executor(
            environment.python,
            self.order.config.run,
            preload=self.request.preload,
            stored_preload=self.request.stored_preload,
            sandbox=self.request.sandbox,
        ).__enter__()
        node = ray.get_runtime_context().get_node_id()
        return Ready(environments.toolchain_of(environment), node, self.gpus)

    def run(self, run: Run, control: bool) -> RunAnswer:
        """Runs one snippet and, where `control` is set, a known-good program after it."""
        assert self.executor is not None
        return run_locally(
            self.executor, msgspec.structs.replace(run, gpus=self.gpus), control=control
        )

    def close(self) -> None:
        """Ends every run, and the zygote."""
        if self.executor:
            self.executor.close()
