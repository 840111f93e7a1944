"""A Ray cluster as a pool: which kinds of machines it has, and the toolchains on them."""

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


class RayToolchain(Environment, frozen=True):
    """A toolchain on the machines with one kind of GPU."""

    word: str | None = None
    """As given to `--toolchain`."""
    kind: str | None = None
    """Of the machine's GPUs, as Ray has it; None: any machine."""
    several: bool = False
    """Whether there are other kinds."""

    @property
    def title(self) -> str | None:
        """The toolchain's name and, where there are several, the kind of GPU."""
        return f"{self.name or 'Python'} on {self.kind}" if self.several else self.name


class RayPool:
    """A Ray cluster, connected to while the context lasts."""

    def __init__(self, config: Config, address: str) -> None:
        self.config, self.address = config, address

    def __enter__(self) -> Self:
        handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
        self._folder = None if self.address else _short_folder()
        try:
            self._knock()
            ray.init(**self._how(), log_to_driver=False, logging_level="ERROR")
        except (OSError, RuntimeError, ValueError, ImportError, RayError) as error:
            self.__exit__(None, None, None)
            where = f"no Ray cluster at {self.address}" if self.address else "Ray does not start"
            raise KbtoolsError(f"{where}: {error}") from error
        except BaseException:
            self.__exit__(None, None, None)
            raise
        for number, handler in handlers.items():  # Ray has put its own there
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
        """Whether anybody is there: Ray itself takes minutes to find out.

        Raises:
            OSError: nobody is.
        """
        host, colon, port = self.address.rpartition(":")
        if colon and port.isdigit():
            socket.create_connection((host.strip("[]"), int(port)), timeout=10).close()

    def _how(self) -> dict[str, Any]:
        if not self.address:
            return {"address": "local", "include_dashboard": False, "_temp_dir": self._folder}
        # the code of the driver runs on every machine, whatever kbtools is installed there
        code = {
            "py_modules": [str(Path(kbtools.__file__).parent)],
            "excludes": ["packaged", "__pycache__"],
        }
        client = self.address.endswith(CLIENT_PORT)
        return {"address": f"ray://{self.address}" if client else self.address} | {
            "runtime_env": code
        }

    def toolchains(self, selection: str | None) -> tuple[Sequence[Environment], Sequence[str]]:
        """Each toolchain that `--toolchain` names, on each kind of GPU that the cluster has."""
        resources = ray.cluster_resources()
        kinds = sorted(name.removeprefix(KIND) for name in resources if name.startswith(KIND))
        known = declared.read_declarations(self.config)
        places = [
            RayToolchain(
                *(self.config, "", word if word in known else None),
                word=word,
                kind=kind,
                several=len(kinds) > 1,
            )
            for word in self._words(selection, list(known))
            for kind in kinds or [None]
        ]
        return places, []

    def _words(self, selection: str | None, known: list[str]) -> Sequence[str | None]:
        if selection == "all":
            return known
        return [part.strip() for part in (selection or "").split(",") if part.strip()] or [None]

    def describe(self, environment: Environment) -> Toolchain:
        """Asks a machine what an environment there holds.

        Raises:
            KbtoolsError: it is not there.
        """
        assert isinstance(environment, RayToolchain)
        task = ray.remote(describe).options(num_cpus=0, resources=self._resources(environment))
        try:
            said: Toolchain = ray.get(task.remote(self._order(environment)), timeout=PATIENCE)
        except RayTaskError as error:
            if isinstance(error.cause, KbtoolsError):
                raise KbtoolsError(f"on the cluster: {error.cause}") from error
            raise KbtoolsError(f"the cluster cannot run kbtools: {error.cause!r}") from error
        except GetTimeoutError as error:
            raise KbtoolsError(f"no machine of the cluster has come for {environment}") from error
        except RayError as error:
            raise KbtoolsError(f"the cluster cannot run kbtools: {error}") from error
        return said

    def engine(self, environment: Environment, request: EngineRequest) -> Engine:
        """Workers that have that environment."""
        assert isinstance(environment, RayToolchain)
        return WorkerPools(self._order(environment), request, self._resources(environment))

    def _order(self, environment: RayToolchain) -> Order:
        file = self.config.root / declared.FILE
        text = file.read_text("utf-8") if file.is_file() else ""
        return Order(self.config, environment.word, text, os.environ.get(environments.FOLDER))

    def _resources(self, environment: RayToolchain) -> dict[str, float]:
        asked = [f"{KIND}{environment.kind}"] if environment.kind else []
        prepared = f"{PREPARED}{environment.word}"
        asked += [prepared] if prepared in ray.cluster_resources() else []
        return dict.fromkeys(asked, 0.001)


def _short_folder() -> str:
    """Below it Ray puts sockets, whose whole path may have 107 bytes."""
    usual = tempfile.gettempdir()
    return tempfile.mkdtemp(prefix="kbr-", dir=usual if len(usual) < 32 else "/tmp")
