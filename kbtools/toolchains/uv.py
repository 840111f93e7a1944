"""uv: makes a virtual environment and installs into it, while its progress is reported."""

from __future__ import annotations

import os
import platform
import re
import selectors
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from kbtools.toolchains.declared import VERSION, Declaration
from kbtools.toolchains.disk_usage import size_of
from kbtools.toolchains.pip_settings import PipSettings, read_pip_settings

ProgressCallback = Callable[[str, int | None], None]
"""Takes what is being done, and how many bytes the environment has so far; None: a remark."""

TICK = 0.5
"""Seconds between two measurements while uv prints nothing."""
NOT_INHERITED = (
    *("PYTHONHOME", "PYTHONPATH", "VIRTUAL_ENV", "CONDA_PREFIX", "__PYVENV_LAUNCHER__"),
    *("UV_PYTHON", "UV_TARGET", "UV_PREFIX", "UV_PROJECT_ENVIRONMENT", "UV_CONSTRAINT"),
    *("UV_OVERRIDE", "UV_BUILD_CONSTRAINT", "UV_SYSTEM_PYTHON", "UV_BREAK_SYSTEM_PACKAGES"),
)
"""Variables that would send packages elsewhere. All others count: mirrors, proxies, caches."""
UNCACHED = ("--no-cache",)
"""For `packages` of a toolchain with an `environment`. uv's cache does not know variables: a wheel
that was built without kernels would be installed wherever else the same release is asked for, and
one that was built with them would be installed here. `--refresh-package` helps here alone, since
what was built still gets into the cache. `before` is installed from the cache, as elsewhere."""


class BuildFailed(Exception):
    """An environment cannot be built as declared."""

    def __init__(self, reason: str, log: Path | None = None) -> None:
        super().__init__(reason)
        self.log = log


class DiskFull(BuildFailed):
    """An environment cannot be built because there is no room for it."""


class Uv(msgspec.Struct, frozen=True):
    """The installer, and where it looks for packages."""

    program: str
    """Path of the executable."""
    version: str
    """As in `uv 0.9.1`."""
    settings: PipSettings

    def build(
        self, folder: Path, declaration: Declaration, python: str, process: InstallerProcess
    ) -> None:
        """Makes the environment and installs what is declared.

        A temporary folder in the environment holds what uv builds meanwhile: so it counts as a
        part of the progress, and what a killed uv leaves is found.

        Args:
            folder: of the environment; it exists and is empty.
            declaration: of the toolchain.
            python: version or path of the interpreter, from `base_interpreter`.
            process: runs the commands in `folder`.

        Raises:
            BuildFailed: something cannot be installed.
            DiskFull: there is no room for it.
        """
        process.report(f"making an environment with {self.version}", 0)
        # of an old version that is not installed here uv downloads a build
        create = (self.program, "venv", "--quiet", "--no-project", "--allow-existing")
        process.run([*create, "--python", python, str(folder)])
        temporary = folder / "tmp"
        temporary.mkdir()
        bounds = temporary / "constraints.txt"
        bounds.write_text("".join(f"{line}\n" for line in declaration.constraints), "utf-8")
        command = [self.program, "pip", "install", "--python", str(folder / "bin" / "python")]
        command.append("--compile-bytecode")  # snippets cannot write it
        bounded = ("--constraint", str(bounds)) if declaration.constraints else ()
        uncached = UNCACHED if declaration.environment else ()
        own = (*declaration.options, *uncached)
        steps = (
            (declaration.before, (), None),
            (declaration.packages, own, declaration.environment),
        )
        for requirements, options, variables in steps:
            if requirements:
                offline = self.settings.no_index and "--no-index" not in options
                sources = ("--no-index",) if offline else ()  # not every uv reads UV_NO_INDEX
                install = [*command, *sources, *options, *bounded, "--", *requirements]
                process.run(install, variables)
        shutil.rmtree(temporary)


def find_uv() -> Uv:
    """Uv beside the interpreter that runs kbtools, or on the PATH.

    Raises:
        BuildFailed: uv is not installed.
    """
    folders = (str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath))
    program = shutil.which("uv", path=os.pathsep.join(folders))
    if not program:
        raise BuildFailed("uv is not installed; next: pip install uv")
    try:
        process = subprocess.run([program, "--version"], capture_output=True, text=True, check=True)
    except (OSError, subprocess.SubprocessError) as error:
        raise BuildFailed(f"{program} cannot be run: {error}") from error
    return Uv(program, " ".join(process.stdout.split()[:2]), read_pip_settings())


def base_interpreter(python: str, root: Path) -> str:
    """What `uv venv --python` takes for the `python` of a declaration.

    Args:
        python: a version, or a path relative to `root`.
        root: folder of the knowledge base.

    Raises:
        BuildFailed: it is a path, and not of an interpreter.
    """
    if not VERSION.fullmatch(python):
        path = root / python
        if not (path.is_file() and os.access(path, os.X_OK)):
            raise BuildFailed(f'{path} is not an interpreter (write a version as in "3.11")')
        return str(path)
    # our own first: whatever else of that version is on the PATH may be another patch release,
    # and evidence records which one it was
    if f"{platform.python_version()}.".startswith(f"{python}."):
        return str(getattr(sys, "_base_executable", sys.executable))
    return python


class InstallerProcess:
    """Runs commands in a folder, reporting what they do and how large the folder is already.

    Args:
        folder: of the environment.
        report: called at least every `TICK` seconds while a command runs.
        lock: a descriptor that the commands inherit, so that it stays locked until they have ended.
        variables: to be set for the commands.
    """

    def __init__(
        self, folder: Path, report: ProgressCallback, lock: int, variables: dict[str, str]
    ) -> None:
        self.folder, self.report, self.lock, self.variables = folder, report, lock, variables
        self._size, self._next = 0, 0.0

    def run(self, command: Sequence[str], more: Mapping[str, str] | None = None) -> None:
        """Runs a command to its end; whatever interrupts us ends it and its children, too.

        Args:
            command: the program and its arguments.
            more: variables to be set for this command alone.

        Raises:
            BuildFailed: it failed.
            DiskFull: it failed for want of room.
        """
        environment = {k: v for k, v in os.environ.items() if k not in NOT_INHERITED}
        environment |= self.variables | dict(more or {})
        if (self.folder / "tmp").is_dir():
            environment["TMPDIR"] = str(self.folder / "tmp")
        process = subprocess.Popen(
            command,
            env=environment,
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            pass_fds=(self.lock,),
        )
        lines: list[str] = []
        try:
            progress = ""
            for line in _lines(process):
                if line:
                    lines.append(line)
                    progress = progress_of(line) or progress
                if progress:
                    self.report(progress, self._measure())
            code = process.wait()
        except BaseException:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            raise
        if code:
            output = "\n".join(lines)
            if re.search(r"No space left on device|os error 28\b|Disk quota exceeded", output):
                raise DiskFull("the disk is full")
            log = self.folder.parent / "log"
            log.write_text(output, "utf-8")
            raise BuildFailed(error_summary(lines) or f"uv ended with exit code {code}", log)

    def _measure(self) -> int:
        """Bytes in the folder, counted anew when that has become cheap beside the time passed."""
        now = time.monotonic()
        if now >= self._next:
            self._size = size_of(self.folder)
            seconds = time.monotonic() - now
            self._next = now + max(TICK, 20 * seconds)
        return self._size


def _lines(process: subprocess.Popen[bytes]) -> Iterator[str]:
    """What a process prints, line by line; an empty line whenever it has been silent for a tick."""
    assert process.stdout is not None
    rest = b""
    with selectors.DefaultSelector() as selector, process.stdout as stream:
        selector.register(stream, selectors.EVENT_READ)
        while True:
            if not selector.select(TICK):
                yield ""
                continue
            chunk = os.read(stream.fileno(), 1 << 16)
            *complete, rest = (rest + chunk).split(b"\n")
            for line in complete if chunk else [rest]:
                yield line.decode("utf-8", "replace").rstrip()
            if not chunk:
                return


def progress_of(line: str) -> str:
    """What uv is doing now, if a line of its output says so."""
    text = line.strip()
    verbs = "Downloading|Downloaded|Building|Built|Resolved|Prepared|Installed|Bytecode compiled"
    if not re.match(f"({verbs}) ", text):
        return ""
    text = re.sub(r"\S*/(\S+)", r"\1", text)  # the file's name, without its folders
    return text if len(text) <= 100 else text[:99] + "…"


def error_summary(lines: Sequence[str]) -> str:
    """The part of uv's output that says why it failed, on one line.

    uv prints `error:` and below it a chain of `cause:`; older versions draw the chain as a tree,
    whose end is behind `╰─▶`, and say `Caused by:`.
    """
    output = "\n".join(lines)
    tree = re.search(r"(?s)╰─▶ (.*?)(?=\n\s*\n|\Z)", output)
    if tree:
        return " ".join(tree[1].split())
    errors = re.findall(r"(?m)^\s*error: (.+)", output)
    causes = re.findall(r"(?m)^\s*(?:cause|Caused by): (.+)", output)
    if errors or causes:
        return ": ".join([*errors[-1:], *causes[-1:]]).strip()
    return next((text for line in reversed(lines) if (text := line.strip())), "")
