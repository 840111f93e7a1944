"""What a probe may ask about a machine: files, variables, an interpreter, programs, limits.

Every path is that of the machine that is looked at. `Machine.root` is where its file system begins
for us: `/`, or the folder in which a test has planted another machine. Nothing here writes, and no
module of an environment is imported into this process.
"""

from __future__ import annotations

import errno
import json
import os
import posixpath
import subprocess
import sys
import time
from typing import (
    Any,
    Callable,
    Dict,
    List,
    Mapping,
    NamedTuple,
    Optional,
    Sequence,
    Tuple,
    TypeVar,
)

from kbtools.doctor.installed import Distribution, distributions_in

Value = TypeVar("Value")

FACTS = """
import json, os, platform, site, sys, sysconfig
def libc():
    try:
        return os.confstr("CS_GNU_LIBC_VERSION").split()[-1]
    except (AttributeError, ValueError, OSError):
        return ""
print(json.dumps({
    "version": platform.python_version(),
    "executable": sys.executable,
    "prefix": sys.prefix,
    "base_prefix": sys.base_prefix,
    "path": [entry for entry in sys.path if entry],
    "include": sysconfig.get_path("include"),
    "platinclude": sysconfig.get_path("platinclude"),
    "suffix": sysconfig.get_config_var("EXT_SUFFIX") or "",
    "platform": sys.platform,
    "machine": platform.machine(),
    "libc": libc(),
    "user_site": site.getusersitepackages() if site.ENABLE_USER_SITE else "",
}))
"""
"""Prints what an interpreter says about itself; imports nothing but the standard library."""


class Unanswered(Exception):
    """A probe cannot tell: a program is missing, took too long, or said what nobody expected."""


class InterpreterError(Exception):
    """The interpreter that was asked for cannot be run."""


class Result(NamedTuple):
    """What a program that was run printed, and how it ended."""

    code: int
    output: str
    """Of both streams."""


class Interpreter(NamedTuple):
    """What a Python interpreter says about itself."""

    version: str
    executable: str
    prefix: str
    base_prefix: str
    path: List[str]
    """Its `sys.path`."""
    include: str
    platinclude: str
    suffix: str
    """Of extension modules, as in `.cpython-312-x86_64-linux-gnu.so`."""
    platform: str
    machine: str
    """As in `x86_64`."""
    libc: str
    """Version of the GNU C library; empty for another one."""
    user_site: str
    """Its folder of packages of the user; empty if it is not used."""


Runner = Callable[[Sequence[str], Mapping[str, str], float], Optional[Result]]
"""Runs a program with an environment and a limit in seconds; None if it could not be started."""


def started(
    command: Sequence[str], environment: Mapping[str, str], limit: float
) -> Optional[Result]:
    """Runs a program; None if there is none of that name or the time is up."""
    try:
        process = subprocess.run(
            list(command),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=dict(environment),
            timeout=limit,
            check=False,
        )
    except (OSError, ValueError, subprocess.SubprocessError):
        return None
    return Result(process.returncode, process.stdout.decode("utf-8", "replace"))


def interpreter_of(executable: str, environment: Mapping[str, str], limit: float) -> Interpreter:
    """Asks an interpreter about itself, in a process of its own.

    Raises:
        InterpreterError: it cannot be run, or its answer cannot be read.
    """
    variables = {**environment, "PYTHONDONTWRITEBYTECODE": "1"}
    result = started([executable, "-c", FACTS], variables, limit)
    try:
        return Interpreter(**json.loads(result.output.strip().splitlines()[-1]))  # type: ignore[union-attr]
    except (AttributeError, IndexError, TypeError, ValueError) as error:
        text = (result.output.strip().splitlines() or [""])[-1] if result else "it did not start"
        raise InterpreterError(f"{executable}: {text}") from error


class Machine:
    """A machine and one of its interpreters, as probes see them."""

    def __init__(
        self,
        interpreter: Interpreter,
        *,
        root: str = "/",
        environment: Optional[Mapping[str, str]] = None,
        facts: Optional[Mapping[str, Any]] = None,
        runner: Runner = started,
        seconds: float = 3.0,
        active: bool = False,
    ) -> None:
        """Makes the view of a machine.

        Args:
            interpreter: whose packages are looked at.
            root: where its file system begins.
            environment: its variables; those of this process by default.
            facts: what the system calls would answer, for a planted machine: `uid`, `cores`,
                `limits`, `free`, `size`, `unwritable`, `now`.
            runner: what runs a program.
            seconds: after which no program is started any more.
            active: whether probes may do more than look, as copy between GPUs.
        """
        self.interpreter = interpreter
        self.root = root
        self.environment: Mapping[str, str] = dict(
            os.environ if environment is None else environment
        )
        self.active = active
        self._facts = dict(facts or {})
        self._runner = runner
        self._deadline = time.monotonic() + seconds
        self._memory: Dict[Any, Any] = {}

    # files

    def path(self, inside: str) -> str:
        """The path by which this process reaches a path of the machine."""
        return inside if self.root == "/" else self.root + posixpath.normpath("/" + inside)

    def read(self, inside: str, limit: int = 1 << 20) -> Optional[str]:
        """The beginning of a text file, at most `limit` bytes; None if it cannot be read."""
        try:
            with open(self.path(inside), "rb") as file:
                return file.read(limit).decode("utf-8", "replace")
        except (OSError, ValueError):
            return None

    def is_file(self, inside: str) -> bool:
        """Whether there is a file, or a link to one."""
        return os.path.isfile(self.path(inside))

    def is_folder(self, inside: str) -> bool:
        """Whether there is a folder, or a link to one."""
        return os.path.isdir(self.path(inside))

    def exists(self, inside: str) -> bool:
        """Whether there is anything of that name."""
        return os.path.lexists(self.path(inside))

    def names(self, folder: str) -> List[str]:
        """The sorted names in a folder; none if it cannot be listed."""
        try:
            return sorted(os.listdir(self.path(folder)))
        except OSError:
            return []

    def size(self, inside: str) -> int:
        """Bytes of a file; -1 if there is none."""
        try:
            return os.stat(self.path(inside)).st_size
        except OSError:
            return -1

    def real(self, inside: str) -> str:
        """A path of the machine without links."""
        real = os.path.realpath(self.path(inside))
        root = os.path.realpath(self.root)
        if root == "/":
            return real
        return real[len(root) :] or "/" if real.startswith(root) else real

    def age(self, inside: str) -> float:
        """Seconds since a file was changed; 0 if there is none."""
        try:
            return float(self._facts.get("now", time.time())) - os.stat(self.path(inside)).st_mtime
        except OSError:
            return 0.0

    # what system calls answer

    def is_writable(self, folder: str) -> bool:
        """Whether this user may make files in a folder that exists."""
        if "unwritable" in self._facts or self.root != "/":
            return folder not in self._facts.get("unwritable", ())
        return os.access(folder, os.W_OK | os.X_OK)

    def is_readable(self, inside: str) -> bool:
        """Whether this user may read and write a file or device that exists."""
        if "unreadable" in self._facts or self.root != "/":
            return inside not in self._facts.get("unreadable", ())
        return os.access(inside, os.R_OK | os.W_OK)

    def refusal(self, device: str) -> Optional[str]:
        """The name of the error with which the kernel refuses to open a device, as in `EPERM`.

        None if it can be opened. A device group refuses what the permissions of the file allow.
        """
        if self.root != "/":
            refusals: Dict[str, str] = self._facts.get("refusals", {})
            return refusals.get(device)
        try:
            os.close(os.open(device, os.O_RDWR | os.O_CLOEXEC))
        except OSError as error:
            return errno.errorcode.get(error.errno or 0, str(error))
        return None

    def space(self, folder: str) -> Optional[Tuple[int, int]]:
        """Size and free bytes of the file system of a folder; None if unknown."""
        if self.root != "/":
            sizes = self._facts.get("space", {}).get(folder)
            return (int(sizes[0]), int(sizes[1])) if sizes else None
        try:
            usage = os.statvfs(folder)
        except OSError:
            return None
        return usage.f_blocks * usage.f_frsize, usage.f_bavail * usage.f_frsize

    def limit(self, name: str) -> Optional[int]:
        """The soft limit `RLIMIT_<name>`; -1 for none, None if unknown."""
        if self.root != "/":
            limits: Dict[str, int] = self._facts.get("limits", {})
            return limits.get(name)
        try:
            import resource

            return resource.getrlimit(getattr(resource, "RLIMIT_" + name))[0]
        except (ImportError, AttributeError, OSError, ValueError):
            return None

    def cores(self) -> int:
        """How many cores this process may use."""
        if self.root != "/":
            return int(self._facts.get("cores", 8))
        try:
            return len(os.sched_getaffinity(0))
        except (AttributeError, OSError):
            return os.cpu_count() or 1

    def uid(self) -> int:
        """The number of the user."""
        return int(self._facts.get("uid", os.getuid() if hasattr(os, "getuid") else 0))

    def owner(self, inside: str) -> Optional[int]:
        """The number of the user whom a file belongs to; None if there is none."""
        if self.root != "/":
            owners: Dict[str, int] = self._facts.get("owners", {})
            return owners.get(inside, self.uid())
        try:
            return os.stat(inside).st_uid
        except OSError:
            return None

    def home(self) -> str:
        """The home folder."""
        return self.environment.get("HOME") or os.path.expanduser("~")

    # programs

    def which(self, program: str) -> Optional[str]:
        """The path of a program on the PATH of the machine; None if there is none."""
        if "/" in program:
            return program if self.is_file(program) else None
        for folder in self.environment.get("PATH", os.defpath).split(":"):
            candidate = posixpath.join(folder or ".", program)
            if self.is_file(candidate) and os.access(self.path(candidate), os.X_OK):
                return candidate
        return None

    def run(self, command: Sequence[str], limit: float = 2.0) -> Optional[Result]:
        """Runs a program; None if it could not be started or the time is up."""
        left = min(limit, self._deadline - time.monotonic())
        if left <= 0.02:
            return None
        return self._runner(command, self.environment, left)

    def python(self, code: str, limit: float) -> Optional[Result]:
        """Runs code in the interpreter that is looked at: what it imports may crash, or hang."""
        return self.run([self.interpreter.executable, "-c", code], limit)

    # packages

    @property
    def distributions(self) -> Dict[str, List[Distribution]]:
        """Canonical name → distributions of that name, in the order of `sys.path`."""
        return self.once("distributions", lambda: distributions_in(self))

    def distribution(self, name: str) -> Optional[Distribution]:
        """The distribution that an import finds; None if it is not installed."""
        several = self.distributions.get(name)
        return several[0] if several else None

    def version(self, name: str) -> Optional[str]:
        """The version of a distribution; None if it is not installed."""
        distribution = self.distribution(name)
        return distribution.version if distribution else None

    def folder_of(self, package: str) -> Optional[str]:
        """The folder of a package that an import would find; None if there is none."""
        for entry in self.interpreter.path:
            candidate = posixpath.join(entry, package)
            if self.is_folder(candidate):
                return candidate
        return None

    def once(self, key: Any, function: Callable[[], Value]) -> Value:
        """What a function returns, remembered under a key: several probes ask the same."""
        if key not in self._memory:
            self._memory[key] = function()
        value: Value = self._memory[key]
        return value


def machine_of(python: str = "", *, seconds: float = 3.0, active: bool = False) -> Machine:
    """The machine that runs us, with an interpreter of it.

    Args:
        python: of which interpreter; empty: of the one that runs this.
        seconds: after which no program is started any more.
        active: whether probes may do more than look.

    Raises:
        InterpreterError: the interpreter cannot be run.
    """
    executable = python or sys.executable
    interpreter = interpreter_of(executable, os.environ, max(seconds, 10.0))
    return Machine(interpreter, seconds=seconds, active=active)
