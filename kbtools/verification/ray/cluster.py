"""A Ray cluster as a machine pool: which kinds of machines it has, and the toolchains on them."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import tempfile
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import ray
from ray.exceptions import GetTimeoutError, RayError, RayTaskError

import kbtools
from kbtools.config import Config, KbtoolsError
from kbtools.toolchains import declared, environments
from kbtools.toolchains.environments import Environment
from kbtools.toolchains.model import Toolchain
from kbtools.verification.machines import Engine, EngineRequest
from kbtools.verification.ray.worker import Order, describe
from kbtools.verification.ray.worker_pools import WorkerPools

CLIENT_PORT = ":10001"
"""Of Ray's client server, for drivers that are on no machine of the cluster."""
KIND = "accelerator_type:"
"""Prefix of the resource by which Ray knows the kind of a machine's GPUs."""
PREPARED = "toolchain:"
"""Prefix of a resource that says which machines have a toolchain, where not all of them do."""
PATIENCE = 600.0
"""Seconds for a machine to say what it holds; it may have to be started first."""


class RayConnectionError(KbtoolsError):
    """Ray does not start, or no cluster is at the address."""


class ClusterError(KbtoolsError):
    """A machine of the cluster has not the toolchain, or cannot run kbtools."""


class RayToolchain(Environment, frozen=True):
    """A toolchain on the machines with one kind of GPU."""

    selector: str | None = None
    """As given to `--toolchain`; None: the Python that runs Ray."""
    gpu_kind: str | None = None
    """Of the machine's GPUs, as Ray has it; None: any machine."""
    names_gpu_kind: bool = False
    """Whether the cluster has other kinds of GPUs, too."""

    @property
    def title(self) -> str | None:
        """The toolchain's name and, where there are several kinds of GPU, the kind."""
        return f"{self.name or 'Python'} on {self.gpu_kind}" if self.names_gpu_kind else self.name


class RayPool:
    """A Ray cluster, connected to while the context lasts."""

    def __init__(self, config: Config, address: str) -> None:
        """Starts nothing; without an `address` entering it starts a cluster on this machine."""
        self.config, self.address = config, address

    def __enter__(self) -> Self:
        handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
        self._folder = None if self.address else _short_folder()
        try:
            self._knock()
            ray.init(**self._connection(), log_to_driver=False, logging_level="ERROR")
        except (OSError, RuntimeError, ValueError, ImportError, RayError) as error:
            self.__exit__(None, None, None)
            problem = f"no Ray cluster at {self.address}" if self.address else "Ray does not start"
            raise RayConnectionError(f"{problem}: {error}") from error
        except BaseException:
            self.__exit__(None, None, None)
            raise
        for number, handler in handlers.items():  # Ray has replaced them
            signal.signal(number, handler)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        ray.shutdown()
        if self._folder:
            shutil.rmtree(self._folder, ignore_errors=True)

    def _knock(self) -> None:
        """Connects to the address and hangs up: Ray itself takes minutes to find nobody there.

        Raises:
            OSError: nobody answers.
        """
        host, colon, port = self.address.rpartition(":")
        if colon and port.isdigit():
            socket.create_connection((host.strip("[]"), int(port)), timeout=10).close()

    def _connection(self) -> dict[str, Any]:
        """The arguments of `ray.init`."""
        if not self.address:
            return {"address": "local", "include_dashboard": False, "_temp_dir": self._folder}
        # the code of the driver runs on every machine, whatever kbtools is installed there
        code = {
            "py_modules": [str(Path(kbtools.__file__).parent)],
            "excludes": ["packaged", "__pycache__"],
        }
        is_client = self.address.endswith(CLIENT_PORT)
        address = f"ray://{self.address}" if is_client else self.address
        return {"address": address, "runtime_env": code}

    def toolchains(self, selection: str | None) -> tuple[Sequence[Environment], Sequence[str]]:
        """Each toolchain that `--toolchain` names, on each kind of GPU that the cluster has."""
        resources = ray.cluster_resources()
        kinds = sorted(name.removeprefix(KIND) for name in resources if name.startswith(KIND))
        declarations = declared.read_declarations(self.config)
        toolchains = [
            RayToolchain(
                config=self.config,
                python="",  # each machine finds its own
                name=selector if selector in declarations else None,
                selector=selector,
                gpu_kind=kind,
                names_gpu_kind=len(kinds) > 1,
            )
            for selector in _selectors(selection, list(declarations))
            for kind in kinds or [None]
        ]
        return toolchains, []

    def describe(self, environment: Environment) -> Toolchain:
        """Asks a machine what an environment there holds.

        Raises:
            ClusterError: no machine has it.
        """
        assert isinstance(environment, RayToolchain)
        task = ray.remote(describe).options(num_cpus=0, resources=self._resources(environment))
        try:
            toolchain: Toolchain = ray.get(task.remote(self._order(environment)), timeout=PATIENCE)
        except RayTaskError as error:
            if isinstance(error.cause, KbtoolsError):
                raise ClusterError(f"on the cluster: {error.cause}") from error
            raise ClusterError(f"the cluster cannot run kbtools: {error.cause!r}") from error
        except GetTimeoutError as error:
            name = environment.title or "Python"
            raise ClusterError(
                f"no machine of the cluster has described {name} in {PATIENCE:.0f} seconds"
            ) from error
        except RayError as error:
            raise ClusterError(f"the cluster cannot run kbtools: {error}") from error
        return toolchain

    def engine(self, environment: Environment, request: EngineRequest) -> Engine:
        """Creates pools of workers that have an environment."""
        assert isinstance(environment, RayToolchain)
        return WorkerPools(self._order(environment), request, self._resources(environment))

    def _order(self, environment: RayToolchain) -> Order:
        file = self.config.root / declared.FILE
        text = file.read_text("utf-8") if file.is_file() else ""
        return Order(self.config, environment.selector, text, os.environ.get(environments.FOLDER))

    def _resources(self, environment: RayToolchain) -> dict[str, float]:
        """A trifle of each resource that marks the machines for a toolchain."""
        names = [f"{KIND}{environment.gpu_kind}"] if environment.gpu_kind else []
        prepared = f"{PREPARED}{environment.selector}"
        names += [prepared] if prepared in ray.cluster_resources() else []
        return dict.fromkeys(names, 0.001)


def _selectors(selection: str | None, names: list[str]) -> Sequence[str | None]:
    """The words of `--toolchain`; `names` are those of the declared toolchains."""
    if selection == "all":
        return names
    return [part.strip() for part in (selection or "").split(",") if part.strip()] or [None]


def _short_folder() -> str:
    """Makes a temporary folder: Ray puts sockets in it, whose path may have 107 bytes."""
    default = tempfile.gettempdir()
    return tempfile.mkdtemp(prefix="kbr-", dir=default if len(default) < 32 else "/tmp")
