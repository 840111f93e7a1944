"""A toolchain: what an interpreter has installed, and the machine it runs on."""

from __future__ import annotations

import hashlib
import json
import subprocess
from collections.abc import Sequence
from fnmatch import fnmatch
from functools import cached_property, lru_cache
from pathlib import Path

import msgspec
from packaging.utils import canonicalize_name

from kbtools.config import KbtoolsError, ToolchainForm

DESCRIBE = Path(__file__).parent.parent / "running" / "describe.py"
MACHINE = ("python", "cuda", "driver", "sm", "gpus")
"""Names in `affected` that are not distributions."""


class InterpreterError(KbtoolsError):
    """An interpreter cannot be run, or does not print what it is asked for."""


class Gpu(msgspec.Struct, frozen=True):
    """A GPU: its product name, and its compute capability as in `9.0`."""

    name: str
    sm: str


class Ptxas(msgspec.Struct, frozen=True):
    """The assembler that a compiler would use, and where it comes from: a module or `PATH`."""

    version: str
    source: str


class Toolchain(msgspec.Struct, frozen=True, omit_defaults=True, dict=True):
    """What is installed, and which GPU is there, as read off an interpreter."""

    python: str
    packages: dict[str, str]
    """Canonical distribution name → version, local part included."""
    platform: str = ""
    """As in `linux-x86_64`."""
    libc: str = ""
    compiler: str = ""
    """First line of `c++ --version`."""
    kernel: str = ""
    cuda: str | None = None
    """Version of the nvcc on the PATH, as in `13.0.88`."""
    driver: str | None = None
    gpus: tuple[Gpu, ...] = ()
    ptxas: Ptxas | None = None
    programs: tuple[str, ...] | None = None
    """Those of `[toolchain] programs` that are on its PATH; None where nobody looked, as in a row
    of evidence: what was run there had what it needs."""

    @property
    def sm(self) -> str | None:
        """Compute capability of the first GPU, as in `9.0`."""
        return self.gpus[0].sm if self.gpus else None

    @cached_property
    def identity(self) -> str:
        """Equal for two toolchains on which a run means the same.

        The kernel's release and the number of GPUs are left out: they change from one machine of
        a kind to the next, and a snippet gets only the GPUs that it asks for.
        """
        gpu = self.gpus[0] if self.gpus else None
        software = (self.python, self.packages, self.platform, self.libc, self.compiler, self.cuda)
        return _identity(msgspec.msgpack.encode((*software, self.driver, gpu, self.ptxas)))

    def brief(self, headline: Sequence[str]) -> str:
        """The packages of `headline` with their versions; the Python if it has none of them.

        `headline` is that of `[toolchain]` in `kbtools.toml`, here and in the methods below.
        """
        packages = [f"{name} {self.packages[name]}" for name in headline if name in self.packages]
        return ", ".join(packages) or f"Python {self.python}"

    def software(self, headline: Sequence[str]) -> str:
        """A line for a person: the Python, the packages of `headline`, nvcc if it names `cuda`."""
        parts = [f"Python {self.python}"]
        if any(name in self.packages for name in headline):
            parts.append(self.brief(headline))
        if self.cuda and "cuda" in headline:
            parts.append(f"nvcc {self.cuda}")
        return ", ".join(parts)

    def label(self, headline: Sequence[str]) -> str:
        """The software, and the GPU if `headline` names `gpus`."""
        if "gpus" not in headline:
            return self.software(headline)
        return f"{self.software(headline)}, {self.gpus[0].name if self.gpus else 'no GPU'}"

    def version(self, name: str) -> str | None:
        """Version of a distribution or of a part of the machine; None if it is missing."""
        if name == "gpus":
            return str(len(self.gpus))
        if name in MACHINE:
            version = getattr(self, name)
            return str(version) if version else None
        return self.packages.get(_canonical(name))


_canonical = lru_cache(1_000)(canonicalize_name)


@lru_cache(10_000)
def _identity(packed: bytes) -> str:
    """The digest of a toolchain. Cached: thousands of rows are of the same one."""
    parts = msgspec.msgpack.decode(packed)
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def describe(python: str, form: ToolchainForm, environment: dict[str, str]) -> Toolchain:
    """Reads a toolchain off its interpreter.

    Args:
        python: path of the interpreter.
        form: which distributions count, no pattern means all, whose ptxas is used, and which
            programs are looked for on the PATH.
        environment: variables that the interpreter is started with.

    Raises:
        InterpreterError: the interpreter cannot be run, or what it prints cannot be read.
    """
    try:
        process = subprocess.run(
            [python, "-I", str(DESCRIBE), json.dumps(form.ptxas), *form.programs],
            capture_output=True,
            text=True,
            timeout=120,
            env=environment,
            check=True,
        )
        toolchain = msgspec.json.decode(process.stdout, type=Toolchain)
    except (OSError, subprocess.SubprocessError, msgspec.MsgspecError) as error:
        stderr = getattr(error, "stderr", "") or ""
        raise InterpreterError(f"{python} cannot be run as Python: {error}\n{stderr}") from error
    counted = {
        name: version
        for name, version in sorted(toolchain.packages.items())
        if not form.packages or any(fnmatch(name, pattern) for pattern in form.packages)
    }
    return msgspec.structs.replace(toolchain, packages=counted)
