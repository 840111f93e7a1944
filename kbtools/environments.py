"""Which interpreter a name stands for: `toolchains.toml`, a path, or the one at hand."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec

from kbtools.config import Config, Unreadable
from kbtools.running.executor import ZYGOTE, base_environment
from kbtools.toolchain import Toolchain
from kbtools.toolchain import describe as read_off

FILE = "toolchains.toml"


class Declared(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A table of `toolchains.toml`."""

    python: str
    """Path of the interpreter, relative to the knowledge base."""
    purpose: str = ""


class Environment(msgspec.Struct, frozen=True):
    """An interpreter, and the name it is declared under."""

    config: Config
    python: str
    name: str | None = None


def declared(config: Config) -> dict[str, Declared]:
    """What `toolchains.toml` declares; nothing where there is none.

    Raises:
        Unreadable: it is not TOML or a table is not as it should be.
    """
    file = config.root / FILE
    try:
        return msgspec.toml.decode(file.read_bytes(), type=dict[str, Declared])
    except FileNotFoundError:
        return {}
    except (OSError, msgspec.MsgspecError) as error:
        raise Unreadable(f"{file}: {error}") from error


def find(config: Config, word: str | None) -> Environment:
    """The environment that a word names; without one, the interpreter that runs kbtools.

    Raises:
        Unreadable: it names none.
    """
    if word is None:
        return Environment(config, sys.executable)
    known = declared(config)
    if word in known:
        python = config.root / known[word].python
        if not os.access(python, os.X_OK):
            raise Unreadable(f"toolchain {word}: {python} is not an interpreter that can be run")
        return Environment(config, str(python), word)
    if os.access(word, os.X_OK) and Path(word).is_file():
        return Environment(config, str(Path(word).absolute()))
    names = ", ".join(known) or "none"
    raise Unreadable(f"no toolchain `{word}`: neither in {FILE} ({names}) nor an interpreter")


def describe(environment: Environment) -> Toolchain:
    """Reads the toolchain off an environment's interpreter, as evidence records it."""
    config = environment.config
    variables = base_environment(environment.python, config.run.environment)
    return read_off(environment.python, config.toolchain.packages, variables)


def as_rows(toolchain: Toolchain, environment: Environment) -> Iterator[tuple[str, str]]:
    """What a person wants to see of a toolchain, and of the sandbox on this machine."""
    yield "interpreter", environment.python
    yield "python", toolchain.python
    yield from toolchain.packages.items()
    yield "platform", f"{toolchain.platform}, {toolchain.libc}, kernel {toolchain.kernel}"
    yield "compiler", toolchain.compiler or "none"
    yield "nvcc", toolchain.cuda or "none on the PATH"
    ptxas = toolchain.ptxas
    yield "ptxas", f"{ptxas.version}, from {ptxas.source}" if ptxas else "none"
    yield "driver", toolchain.driver or "none"
    for i, gpu in enumerate(toolchain.gpus):
        yield f"GPU {i}", f"{gpu.name}, compute capability {gpu.sm}"
    if not toolchain.gpus:
        yield "GPU", "none"
    for part, state in sandbox(environment).items():
        yield f"sandbox, {part}", "yes" if state is True else f"NOT sandboxed: {state}"


def sandbox(environment: Environment) -> dict[str, object]:
    """What this kernel allows of the sandbox, as a zygote finds it."""
    variables = base_environment(environment.python, environment.config.run.environment)
    done = subprocess.run(
        [environment.python, str(ZYGOTE), ""],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        env=variables,
        check=False,
    )
    try:
        return dict(json.loads(done.stdout.splitlines()[0])["sandbox"])
    except (IndexError, ValueError, KeyError):
        return {"state": done.stderr.decode("utf-8", "replace")[-300:]}
