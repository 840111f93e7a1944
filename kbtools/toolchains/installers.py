"""uv and pip: making a virtual environment and installing into it, watched from outside."""

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
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from kbtools.config import KbtoolsError
from kbtools.toolchains.declared import VERSION, Declaration
from kbtools.toolchains.hardlinks import size_of

ProgressCallback = Callable[[str, int | None], None]
"""Takes what is being done, and how many bytes the environment has so far; None: a remark."""

TICK = 0.5
"""Seconds between two looks at an installer that prints nothing."""
NOT_INHERITED = (
    *("PYTHONHOME", "PYTHONPATH", "VIRTUAL_ENV", "CONDA_PREFIX", "__PYVENV_LAUNCHER__"),
    *("PIP_PREFIX", "PIP_ROOT", "PIP_TARGET", "PIP_USER", "PIP_PYTHON", "PIP_REQUIREMENT"),
    *("UV_PYTHON", "UV_TARGET", "UV_PREFIX", "UV_PROJECT_ENVIRONMENT"),
)
"""Variables that would send packages elsewhere. All others count: mirrors, proxies, caches."""


class BuildFailed(Exception):
    """An environment cannot be built as declared."""

    def __init__(self, why: str, log: Path | None = None) -> None:
        super().__init__(why)
        self.log = log


class DiskFull(BuildFailed):
    """An environment cannot be built for want of room, by whatever installer."""


class Installer(msgspec.Struct, frozen=True):
    """uv or pip, and the interpreter that environments are made of."""

    name: str
    """As in `pip 25.0`."""
    create: tuple[str, ...]
    """Command that makes an empty environment; its folder is to be added."""
    install: tuple[str, ...]
    """Command that installs; `@PYTHON@` stands for the environment's interpreter."""

    def build(self, place: Path, one: Declaration, tell: ProgressCallback, lock: int) -> None:
        """Makes the environment and installs what is declared.

        Its temporary folder is in the environment meanwhile: so that what is downloaded counts,
        and what a killed installer leaves is found.

        Raises:
            BuildFailed: something cannot be installed.
            DiskFull: there is no room for it.
        """
        run = InstallerProcess(place, tell, lock)
        tell(f"making an environment with {self.name}", 0)
        run([*self.create, str(place)])
        temporary = place / "tmp"
        temporary.mkdir()
        bounds = temporary / "constraints.txt"
        bounds.write_text("".join(f"{line}\n" for line in one.constraints), "utf-8")
        bounded = ("--constraint", str(bounds)) if one.constraints else ()
        python = str(place / "bin" / "python")
        for requirements, options in ((one.before, ()), (one.packages, one.options)):
            if requirements:
                command = [part.replace("@PYTHON@", python) for part in self.install]
                run([*command, *options, *bounded, "--", *requirements])
        shutil.rmtree(temporary)


def installers(python: str, root: Path, wanted: str | None) -> list[Installer]:
    """What can build an environment of a Python, the best first; `wanted` is `uv` or `pip`.

    Raises:
        KbtoolsError: there is no such Python, or nothing that installs.
    """
    uv = shutil.which("uv", path=_beside_and_on_path()) if wanted != "pip" else None
    base = base_python(python, root)
    found = []
    if uv:
        # without a Python of that version uv may bring one
        create = (uv, "venv", "--quiet", "--no-project", "--allow-existing")
        compiled = ("--compile-bytecode", "--python", "@PYTHON@")  # snippets cannot write it
        found.append(
            Installer(
                name=_said([uv, "--version"]) or "uv",
                create=(*create, "--python", base or python),
                install=(uv, "pip", "install", *compiled),
            )
        )
    pip = (sys.executable, "-m", "pip")
    version = _said([*pip, "--version"]) if wanted != "uv" else ""
    if not version and base and wanted != "uv":
        pip = (base, "-m", "pip")
        version = _said([*pip, "--version"])
    if version and base:
        quiet = ("--no-input", "--progress-bar", "off", "--disable-pip-version-check")
        found.append(
            Installer(
                name=version,
                # what ensurepip brings, setuptools above all, nobody has declared
                create=(base, "-m", "venv", "--without-pip"),
                install=(*pip, "--python", "@PYTHON@", "install", *quiet),
            )
        )
    if not found and not base:
        raise KbtoolsError(f"no Python {python} on the PATH: install one, or uv, which brings it")
    if not found:
        raise KbtoolsError(f"there is no {wanted or 'uv, and no pip'} to install packages with")
    return found


def base_python(wanted: str, root: Path) -> str | None:
    """The interpreter that a version or a path stands for; None where no such version is here.

    Raises:
        KbtoolsError: a path is no interpreter.
    """
    if not VERSION.fullmatch(wanted):
        path = root / wanted
        if not (path.is_file() and os.access(path, os.X_OK)):
            raise KbtoolsError(f'{path} is no interpreter (a version is written as in "3.11")')
        return str(path)
    if f"{platform.python_version()}.".startswith(f"{wanted}."):
        return str(getattr(sys, "_base_executable", sys.executable))
    name = "python" + ".".join(wanted.split(".")[:2])
    # a shim of pyenv is there for every version, and runs only some
    there = shutil.which(name) or name
    version = _said([there, "-c", "import platform; print('v', platform.python_version())"])
    return there if f"{version}.".startswith(f"v {wanted}.") else None


def _beside_and_on_path() -> str:
    return os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)))


def _said(command: Sequence[str]) -> str:
    """The first two words that a command prints; nothing where it cannot be run."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    except (OSError, subprocess.SubprocessError):
        return ""
    return " ".join(done.stdout.split()[:2])


class InstallerProcess:
    """Runs installers in a folder, telling what they do and how much there is already."""

    def __init__(self, place: Path, tell: ProgressCallback, lock: int) -> None:
        self.place, self.tell, self.lock = place, tell, lock
        self._size, self._next = 0, 0.0

    def __call__(self, command: Sequence[str]) -> None:
        """Runs a command to its end; whatever interrupts us ends it and its children, too.

        Raises:
            BuildFailed: it failed.
            DiskFull: it failed for want of room.
        """
        env = {k: v for k, v in os.environ.items() if k not in NOT_INHERITED}
        env["PYTHONUNBUFFERED"] = "1"
        if (self.place / "tmp").is_dir():
            env["TMPDIR"] = str(self.place / "tmp")
        process = subprocess.Popen(
            command,
            env=env,
            cwd=self.place,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            pass_fds=(self.lock,),
        )
        lines: list[str] = []
        try:
            doing = ""
            for line in _lines(process):
                if line:
                    lines.append(line)
                    doing = progress_of(line) or doing
                if doing:
                    self.tell(doing, self._measured())
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
            log = self.place.parent / "log"
            log.write_text(output, "utf-8")
            raise BuildFailed(error_summary(lines) or f"it ended with {code}", log)

    def _measured(self) -> int:
        """Bytes in the folder, counted anew when that has become cheap beside the time passed."""
        now = time.monotonic()
        if now >= self._next:
            self._size = size_of(self.place)
            took = time.monotonic() - now
            self._next = now + max(TICK, 20 * took)
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
            piece = os.read(stream.fileno(), 1 << 16)
            *whole, rest = (rest + piece).split(b"\n")
            for line in whole if piece else [rest]:
                yield line.decode("utf-8", "replace").rstrip()
            if not piece:
                return


def progress_of(line: str) -> str:
    """What an installer is doing now, if a line of its output says so."""
    text = line.strip()
    known = r"(Collecting|Downloading|Using cached|Building|Preparing|Installing|Processing|"
    if not re.match(known + r"Resolved|Prepared|Bytecode compiled|Installed) ", text):
        return ""
    text = re.sub(r"\S*/(\S+)", r"\1", text)  # the file, not the way to it
    return text if len(text) <= 100 else text[:99] + "…"


def error_summary(lines: Sequence[str]) -> str:
    """The one line of an installer's output that says why it failed."""
    ends = [i for i, line in enumerate(lines) if "[end of output]" in line]
    if ends:  # of a package's own build, which pip quotes
        return next((text for line in lines[ends[0] - 1 :: -1] if (text := line.strip(" │"))), "")
    whole = "\n".join(lines)
    told = re.findall(r"(?m)^\s*(ERROR|error|cause|Caused by): (.+)", whole)
    errors = [text.strip() for kind, text in told if kind.lower() == "error"]
    broken = re.findall(r"after connection broken by (.+)", whole)
    if broken and (not errors or "No matching distribution" in errors[-1]):
        known = re.search(r"\[Errno -?\d+\] ([\w ]+)|(Read timed out)", broken[-1])
        return f"the package index cannot be reached: {known[0] if known else broken[-1]}"
    because = re.search(r"(?s)╰─▶ (.*?)(?=\n\s*\n|\Z)", whole)  # as older uv puts it
    if because:
        return " ".join(because[1].split())
    if told and told[-1][0] not in ("ERROR", "error"):  # as newer uv does: the last is the first
        return ": ".join([*errors[-1:], told[-1][1].strip()])
    return errors[-1] if errors else next((s for x in reversed(lines) if (s := x.strip())), "")
