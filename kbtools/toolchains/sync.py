"""Build and remove the environments that `toolchains.toml` declares.

An environment is built where it stays, in `.builds/NAME`, checked, marked as complete, and only
then does `NAME` become a link to it, in one step. Nothing is ever moved: a virtual environment is
full of absolute paths (the first line of every script, `pyvenv.cfg`), which are right from the
first moment on. Whenever a build is killed, `NAME` is either what it was before or complete. The
next sync removes what a killed build leaves in `.builds`; what uv has downloaded is in its cache.
(A power cut can break this promise.)
"""

from __future__ import annotations

import fcntl
import os
import secrets
import shlex
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from kbtools.config import Config, KbtoolsError, ToolchainForm
from kbtools.running.environment import base_environment
from kbtools.toolchains import environments
from kbtools.toolchains.declared import FILE, Declaration, find_declaration, read_declarations
from kbtools.toolchains.disk_usage import size_of
from kbtools.toolchains.environments import BuildRecord
from kbtools.toolchains.model import InterpreterError, describe
from kbtools.toolchains.uv import (
    BuildFailed,
    DiskFull,
    InstallerProcess,
    ProgressCallback,
    base_interpreter,
    find_uv,
)

GB = 10**9
MARGIN = 2
"""Bytes to be free for each byte of an environment: uv unpacks every wheel in its cache, and copies
the files from there if the cache is on another file system."""


class SyncError(KbtoolsError):
    """A toolchain cannot be built or removed."""


def sync(config: Config, name: str, report: ProgressCallback) -> tuple[BuildRecord, bool]:
    """Makes an environment what its declaration says; whether there was anything to do.

    Args:
        config: of the knowledge base.
        name: of the toolchain.
        report: called with what is being done and the bytes that are there so far.

    Raises:
        DeclarationError: `toolchains.toml` is wrong.
        SyncError: the name is not declared, the disk is too small, or it cannot be installed;
            an environment that was there before is as it was.
    """
    declaration = buildable(config, name)
    home = environments.environments_folder(config)
    try:
        with build_lock(
            home, name, lambda: report("another sync of it is at work: waiting", None)
        ) as lock:
            record = environments.read_build_record(home / name)
            if record and environments.state_of(config, name, declaration) == "ready":
                return record, False
            if (home / name).exists() and not (home / name).is_symlink():
                raise SyncError(f"{home / name} is in the way: kbtools did not make it")
            remove_leftovers(home, name)
            refuse_small_disk(home, name, declaration)
            build = Build(config, name, declaration, home)
            return build.replace(report, lock), True
    except DiskFull as error:
        free = shutil.disk_usage(home).free / GB
        raise SyncError(
            f"toolchain {name}: the disk is full ({home}: {free:.1f} GB free, it takes"
            f"{declaration.size_note or ' more'}); nothing of it was left there"
        ) from error
    except BuildFailed as error:
        log = f"\n(the complete output of uv: {error.log})" if error.log else ""
        raise SyncError(f"toolchain {name}: {error}{log}") from error
    except OSError as error:
        raise SyncError(f"toolchain {name}: {error}") from error


def buildable(config: Config, name: str) -> Declaration:
    """The declaration of a toolchain that kbtools builds.

    Raises:
        DeclarationError: `toolchains.toml` is wrong.
        SyncError: the name is not declared, or names an interpreter of the user.
    """
    declaration = find_declaration(config, name)
    if declaration is None:
        names = ", ".join(read_declarations(config)) or "none"
        raise SyncError(f"no toolchain `{name}` in {FILE} ({names})")
    if not declaration.is_built:
        raise SyncError(
            f"toolchain {name} is an interpreter of yours, not built by kbtools: "
            f"{declaration.python}"
        )
    return declaration


def refuse_small_disk(home: Path, name: str, declaration: Declaration) -> None:
    """Stops a build that would not fit before anything is downloaded.

    Args:
        home: the folder of the environments.
        name: of the toolchain.
        declaration: of that name.

    Raises:
        SyncError: there is less space than it takes.
    """
    free, need = shutil.disk_usage(home).free, declaration.size_gb * MARGIN * GB
    if free < need:
        raise SyncError(
            f"toolchain {name}{declaration.size_note} takes about {need / GB:.1f} GB while it is "
            f"built, and {home} has {free / GB:.1f} GB free; make room (kbtools toolchain prune), "
            f"or name a folder on a larger disk in {environments.FOLDER}"
        )


class Build(msgspec.Struct, frozen=True):
    """One build of a toolchain's environment."""

    config: Config
    name: str
    declaration: Declaration
    home: Path
    """The folder of the environments."""

    def replace(self, report: ProgressCallback, lock: int) -> BuildRecord:
        """Builds the environment and puts it in the place of the previous one.

        Args:
            report: called with what is being done and the bytes that are there so far.
            lock: the descriptor of `build_lock`.

        Raises:
            BuildFailed: it cannot be built.
            OSError: as of a full disk.
        """
        started = time.monotonic()
        folder = self.home / ".builds" / self.name / f"env-{secrets.token_hex(4)}"
        try:
            python = base_interpreter(self.declaration.python, self.config.root)
            uv = find_uv()
            folder.mkdir()
            process = InstallerProcess(folder, report, lock, uv.settings.for_uv(os.environ))
            uv.build(folder, self.declaration, python, process)
            expose_programs(folder, self.declaration)
            check_installed(folder, self.declaration)
            size, unshared = size_of(folder), size_of(folder, only_unshared=True)
            record = BuildRecord(
                recipe=self.declaration.recipe,
                installer=uv.version,
                size=size,
                shared=size - unshared,
                seconds=time.monotonic() - started,
            )
            (folder / BuildRecord.FILE).write_bytes(msgspec.json.encode(record) + b"\n")
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        link = self.home / ".builds" / self.name / "link"
        link.symlink_to(folder.relative_to(self.home))
        link.replace(self.home / self.name)  # the only step that others can see
        remove_leftovers(self.home, self.name)
        return record


def expose_programs(folder: Path, declaration: Declaration) -> None:
    """Puts programs of installed packages on the environment's PATH, and makes its links.

    Each program gets a script of its name, not a link: nvcc, for one, looks for its parts beside
    the path that it was called by, and would not find them beside a link.

    Raises:
        BuildFailed: a declared folder does not exist.
    """
    [packages] = folder.glob("lib/python3*/site-packages")
    for link, target in declaration.links.items():
        (packages / link).parent.mkdir(parents=True, exist_ok=True)
        (packages / link).symlink_to(target)
        if not (packages / link).exists():
            raise BuildFailed(f"the link `{link}` would point to nothing: {target}")
    for path in declaration.path:
        if not (packages / path).is_dir():
            raise BuildFailed(f"none of its packages has a folder `{path}`")
        for program in sorted((packages / path).iterdir()):
            script = folder / "bin" / program.name
            if program.is_file() and os.access(program, os.X_OK) and not script.exists():
                script.write_text(f'#!/bin/sh\nexec {shlex.quote(str(program))} "$@"\n', "utf-8")
                script.chmod(0o755)


def check_installed(folder: Path, declaration: Declaration) -> None:
    """Runs the interpreter and compares what it has with what was declared.

    Raises:
        BuildFailed: a requirement is not met.
    """
    python = str(folder / "bin" / "python")
    try:
        toolchain = describe(python, ToolchainForm(), base_environment(python))
    except InterpreterError as error:
        raise BuildFailed(str(error)) from error
    environment = {"python_version": ".".join(toolchain.python.split(".")[:2])}
    for text in (*declaration.before, *declaration.packages):
        requirement = Requirement(text)
        if requirement.marker and not requirement.marker.evaluate(environment):
            continue
        version = toolchain.packages.get(canonicalize_name(requirement.name))
        if version is None:
            raise BuildFailed(f"`{text}` was installed and is missing")
        if not requirement.specifier.contains(version, prereleases=True):
            raise BuildFailed(f"`{text}` is declared, and {version} was installed")


def complete_environments(home: Path) -> Iterator[tuple[str, Path]]:
    """Name and build of every complete environment in a folder."""
    for link in sorted(home.glob("[!.]*")):
        if link.is_symlink() and environments.read_build_record(link):
            yield link.name, link.resolve()


def interrupted_builds(home: Path) -> list[str]:
    """Names with incomplete builds, which a killed sync left or a running one is working on."""
    builds = sorted((home / ".builds").glob("*/env-*"))
    complete = {build for _, build in complete_environments(home)}
    return list(dict.fromkeys(p.parent.name for p in builds if p.resolve() not in complete))


def prune(home: Path, name: str, *, keep_complete: bool = False) -> int:
    """Removes an environment, and what killed syncs of it left; the bytes freed.

    Args:
        home: the folder of the environments.
        name: of the environment.
        keep_complete: remove only what killed syncs left.

    Raises:
        SyncError: a sync of it is running, or it cannot be removed.
    """
    try:
        with build_lock(home, name, None):
            if not keep_complete:
                (home / name).unlink(missing_ok=True)
            return remove_leftovers(home, name)
    except BlockingIOError as error:
        raise SyncError(f"toolchain {name}: a sync of it is at work; left alone") from error
    except OSError as error:
        raise SyncError(f"toolchain {name}: {error}") from error


def remove_leftovers(home: Path, name: str) -> int:
    """Removes builds that no name points to; the bytes freed. The caller holds the lock."""
    freed = 0
    link = home / name
    current = link.readlink().name if link.is_symlink() else None
    (home / ".builds" / name / "link").unlink(missing_ok=True)
    for build in (home / ".builds" / name).glob("env-*"):
        if build.name != current:
            freed += size_of(build, only_unshared=True)
            shutil.rmtree(build)
    return freed


@contextmanager
def build_lock(home: Path, name: str, wait: Callable[[], None] | None) -> Iterator[int]:
    """Holds the lock of a name, which one sync at a time may hold; its descriptor.

    uv inherits the descriptor: if kbtools is killed, the lock is held until uv has ended, too, so
    that no other sync removes files under its hands.

    Args:
        home: the folder of the environments.
        name: of the environment.
        wait: called before waiting for the lock; None: do not wait.

    Raises:
        BlockingIOError: another process holds it, and there is no `wait`.
    """
    folder = home / ".builds" / name
    folder.mkdir(parents=True, exist_ok=True)
    lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o666)
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if wait is None:
                raise
            wait()
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield lock
    finally:
        os.close(lock)
