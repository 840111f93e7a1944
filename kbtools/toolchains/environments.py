"""Find the interpreter that a name stands for: a built environment, a path, or kbtools' own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Literal

import msgspec

from kbtools.config import Config, KbtoolsError
from kbtools.running.environment import base_environment
from kbtools.running.zygote_process import ZYGOTE
from kbtools.toolchains.declared import FILE, Declaration, find_declaration, read_declarations
from kbtools.toolchains.model import Toolchain, describe

FOLDER = "KBTOOLS_TOOLCHAINS"
"""Variable that names the folder of the environments, so that several checkouts share them."""

State = Literal["ready", "stale", "not synced", "broken", "own"]
"""`own` is an interpreter that is used as it is; `broken` has lost its base interpreter."""


class UnknownToolchain(KbtoolsError):
    """A word is neither a declared toolchain nor an interpreter, or no toolchain is built."""


class EnvironmentNotReady(KbtoolsError):
    """A declared toolchain has to be built before it can be used, or its interpreter is missing."""


class BuildRecord(msgspec.Struct, frozen=True):
    """Written into an environment when its build is complete."""

    recipe: str
    """Of the declaration that it was built from."""
    installer: str
    """As in `uv 0.9.1`."""
    size: int
    """Bytes on the disk, those shared with other environments included."""
    shared: int
    """Bytes of `size` that are hard links: removing the environment does not free them."""
    seconds: float
    """Wall time of the build."""

    FILE = "kbtools-toolchain.json"


class Environment(msgspec.Struct, frozen=True):
    """An interpreter, and the name it is declared under."""

    config: Config
    python: str
    name: str | None = None

    @property
    def word(self) -> str:
        """What `--toolchain` takes for it; empty for the interpreter that runs kbtools."""
        return self.name or (self.python if self.python != sys.executable else "")

    @property
    def title(self) -> str | None:
        """What a report calls it."""
        return self.name


def environments_folder(config: Config) -> Path:
    """The folder of the environments. Each is a link to a build, and builds are never moved."""
    folder = os.environ.get(FOLDER)
    return Path(folder).absolute() if folder else config.root / ".kbtools" / "toolchains"


def read_build_record(folder: Path) -> BuildRecord | None:
    """The record of a complete environment; None if the folder is no such environment."""
    try:
        return msgspec.json.decode((folder / BuildRecord.FILE).read_bytes(), type=BuildRecord)
    except (OSError, msgspec.MsgspecError):
        return None


def state_of(config: Config, name: str, declaration: Declaration) -> State:
    """The state of a declared toolchain on this machine.

    Args:
        config: of the knowledge base.
        name: of the toolchain.
        declaration: of that name.
    """
    if not declaration.is_built:
        return "own"
    folder = environments_folder(config) / name
    record = read_build_record(folder)
    if record is None:
        return "not synced"
    if record.recipe != declaration.recipe:
        return "stale"
    return "ready" if os.access(folder / "bin" / "python", os.X_OK) else "broken"


def find_environment(config: Config, word: str | None) -> Environment:
    """The environment that a word names; without a word, the interpreter that runs kbtools.

    Raises:
        DeclarationError: `toolchains.toml` is wrong.
        UnknownToolchain: the word is neither a declared toolchain nor an interpreter.
        EnvironmentNotReady: the toolchain has to be built first.
    """
    if word is None:
        return Environment(config, sys.executable)
    if declaration := find_declaration(config, word):
        return Environment(config, _interpreter(config, word, declaration), word)
    if os.access(word, os.X_OK) and Path(word).is_file():
        return Environment(config, str(Path(word).absolute()))
    names = ", ".join(read_declarations(config)) or "none"
    raise UnknownToolchain(f"no toolchain `{word}`: neither in {FILE} ({names}) nor an interpreter")


def _interpreter(config: Config, name: str, declaration: Declaration) -> str:
    reason = {
        "not synced": "is not on this machine yet",
        "stale": f"was built from another declaration than {FILE} has now",
        "broken": "has lost the Python that it was built from",
    }.get(state_of(config, name, declaration))
    if reason:
        command = f"kbtools toolchain sync {name}{declaration.size_note}"
        raise EnvironmentNotReady(f"toolchain {name} {reason}; build it: {command}")
    python = environments_folder(config) / name / "bin" / "python"
    if not declaration.is_built:
        python = config.root / declaration.python
        if not (python.is_file() and os.access(python, os.X_OK)):
            raise EnvironmentNotReady(
                f"toolchain {name}: {python} is not an interpreter that can be run"
            )
    return str(python)


def select_environments(
    config: Config, selection: str | None
) -> tuple[list[Environment], list[str]]:
    """The environments that `--toolchain` selects, and names of declared ones that are not built.

    Args:
        config: of the knowledge base.
        selection: names or interpreters, separated by commas; `all` for every declared toolchain
            that is built on this machine; None for the interpreter that runs kbtools.

    Raises:
        DeclarationError: `toolchains.toml` is wrong.
        UnknownToolchain: a word names no toolchain, or `all` finds none that is built.
        EnvironmentNotReady: a word names a toolchain that has to be built first.
    """
    if selection != "all":
        words = [word.strip() for word in (selection or "").split(",") if word.strip()]
        chosen: list[str | None] = [*words] or [None]
        return [find_environment(config, word) for word in chosen], []
    environments, missing = [], []
    for name, declaration in read_declarations(config).items():
        if state_of(config, name, declaration) in ("ready", "own"):
            environments.append(find_environment(config, name))
        else:
            missing.append(name)
    if not environments:
        raise UnknownToolchain("no toolchain is built here; see: kbtools toolchain list")
    return environments, missing


def toolchain_of(environment: Environment) -> Toolchain:
    """Reads the toolchain off an environment's interpreter, as evidence records it.

    Raises:
        InterpreterError: the interpreter cannot be run.
    """
    config = environment.config
    variables = base_environment(environment.python, config.run)
    return describe(environment.python, config.toolchain, variables)


def sandbox_states(environment: Environment) -> dict[str, object]:
    """Part of the sandbox → True, or the reason why this kernel does not allow it."""
    variables = base_environment(environment.python, environment.config.run)
    zygote = subprocess.run(
        [environment.python, str(ZYGOTE), ""],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        env=variables,
        check=False,
    )
    try:
        return dict(json.loads(zygote.stdout.splitlines()[0])["sandbox"])
    except (IndexError, ValueError, KeyError):
        return {"state": zygote.stderr.decode("utf-8", "replace")[-300:]}
