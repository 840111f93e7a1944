"""Builds and removes the environments that `toolchains.toml` declares.

An environment is built where it stays, in `.builds/NAME`, checked, marked as whole, and only then
does `NAME` become a link to it, in one step. Nothing is ever moved: a virtual environment is full
of absolute paths (the first line of every script, `pyvenv.cfg`), and these are right from the first
moment on. Whatever the moment at which a build is killed, `NAME` is either what it was before or
whole. What a killed build leaves in `.builds` is removed by the next sync; what it had downloaded
is in the cache of uv or pip. (Against a power cut there is no such promise.)
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

from kbtools.config import Config, KbtoolsError
from kbtools.running.environment import base_environment
from kbtools.toolchains import declared, environments
from kbtools.toolchains.declared import FILE, Declaration
from kbtools.toolchains.environments import BuildRecord
from kbtools.toolchains.hardlinks import share, size_of
from kbtools.toolchains.installers import (
    BuildFailed,
    DiskFull,
    Installer,
    ProgressCallback,
    installers,
)
from kbtools.toolchains.model import describe

GB = 10**9
MARGIN = 2
"""While an environment is built there are, beside what is unpacked (1), the wheels in use and in
pip's cache: about half of that each."""


def sync(
    config: Config, name: str, tell: ProgressCallback, installer: str | None = None
) -> tuple[BuildRecord, bool]:
    """Makes an environment what its declaration says; whether there was anything to do.

    `installer` is `uv` or `pip`; by default uv where there is one, and pip where uv fails.

    Raises:
        KbtoolsError: it is not declared, the disk is too small, or it cannot be installed; then
            the environment that there was, if any, is as it was.
    """
    one = declaration(config, name)
    home = environments.environments_folder(config)
    try:
        with build_lock(
            home, name, lambda: tell("another sync of it is at work: waiting", None)
        ) as lock:
            there = environments.read_build_record(home / name)
            if there and environments.state_of(config, name, one) == "ready":
                return there, False
            if (home / name).exists() and not (home / name).is_symlink():
                raise KbtoolsError(f"{home / name} is in the way: it was not made by kbtools")
            remove_leftovers(home, name)
            refuse_small_disk(home, name, one)
            tools = installers(one.python, config.root, installer)
            return _replace(home, name, one, tools, tell, lock), True
    except DiskFull as error:
        free = shutil.disk_usage(home).free / GB
        raise KbtoolsError(
            f"toolchain {name}: the disk is full ({home}: {free:.1f} GB free, it takes"
            f"{one.size_note or ' more'}); nothing of it was left there"
        ) from error
    except BuildFailed as error:
        more = f"\n(all that the installer printed: {error.log})" if error.log else ""
        raise KbtoolsError(f"toolchain {name}: {error}{more}") from error
    except OSError as error:
        raise KbtoolsError(f"toolchain {name}: {error}") from error


def declaration(config: Config, name: str) -> Declaration:
    """What `toolchains.toml` says of an environment that is built.

    Raises:
        KbtoolsError: nothing, or it names an interpreter that is not ours to touch.
    """
    one = declared.find_declaration(config, name)
    if one is None:
        names = ", ".join(declared.read_declarations(config)) or "none"
        raise KbtoolsError(f"no toolchain `{name}` in {FILE} ({names})")
    if not one.is_built:
        raise KbtoolsError(f"toolchain {name} is an interpreter of yours: {one.python}")
    return one


def refuse_small_disk(home: Path, name: str, one: Declaration) -> None:
    """Stops a build that would not fit before anything is fetched.

    Raises:
        KbtoolsError: there is less free than it takes.
    """
    free, need = shutil.disk_usage(home).free, one.size_gb * MARGIN * GB
    if free < need:
        raise KbtoolsError(
            f"toolchain {name}{one.size_note} takes about {need / GB:.1f} GB while it is built, "
            f"and {home} has {free / GB:.1f} GB free; make room (kbtools toolchain prune), or name "
            f"a folder on a larger disk in {environments.FOLDER}"
        )


def _replace(
    home: Path,
    name: str,
    one: Declaration,
    tools: list[Installer],
    tell: ProgressCallback,
    lock: int,
) -> BuildRecord:
    """Builds the environment anew and puts it in the place of the one there was."""
    started = time.monotonic()
    place = home / ".builds" / name / f"env-{secrets.token_hex(4)}"
    try:
        tool = _install(place, one, tools, tell, lock)
        expose_programs(place, one)
        check_installed(place, one)
        tell("looking for files that other environments have, too", size_of(place))
        others = [other for label, other in complete_environments(home) if label != name]
        saved = share(place, others)
        done = BuildRecord(one.recipe, tool.name, size_of(place), saved, time.monotonic() - started)
        (place / BuildRecord.FILE).write_bytes(msgspec.json.encode(done) + b"\n")
    except BaseException:
        shutil.rmtree(place, ignore_errors=True)
        raise
    link = home / ".builds" / name / "link"
    link.symlink_to(place.relative_to(home))
    link.replace(home / name)  # the only step that anybody sees
    remove_leftovers(home, name)
    return done


def _install(
    place: Path, one: Declaration, tools: list[Installer], tell: ProgressCallback, lock: int
) -> Installer:
    """Installs with the first of these that can; which one that was."""
    for tool in tools:
        place.mkdir()
        try:
            tool.build(place, one, tell, lock)
        except DiskFull:
            raise
        except BuildFailed as error:
            if tool is tools[-1]:
                raise
            tell(f"{tool.name}: {error}. Trying {tools[-1].name}", None)
            shutil.rmtree(place)
        else:
            break
    return tool


def expose_programs(place: Path, one: Declaration) -> None:
    """Puts programs of installed packages on the environment's PATH, and makes its links.

    A program is started by a script of its name: nvcc, for one, looks for its parts beside the
    path that it was called by, and would not find them beside a link.

    Raises:
        BuildFailed: a declared folder is not there.
    """
    [packages] = place.glob("lib/python3*/site-packages")
    for link, target in one.links.items():
        (packages / link).parent.mkdir(parents=True, exist_ok=True)
        (packages / link).symlink_to(target)
        if not (packages / link).exists():
            raise BuildFailed(f"`{link}` would point to nothing: {target}")
    for folder in one.path:
        if not (packages / folder).is_dir():
            raise BuildFailed(f"none of its packages has a folder `{folder}`")
        for program in sorted((packages / folder).iterdir()):
            script = place / "bin" / program.name
            if program.is_file() and os.access(program, os.X_OK) and not script.exists():
                script.write_text(f'#!/bin/sh\nexec {shlex.quote(str(program))} "$@"\n', "utf-8")
                script.chmod(0o755)


def check_installed(place: Path, one: Declaration) -> None:
    """Runs the interpreter and looks for everything that was asked for.

    Raises:
        BuildFailed: something is not there, or not as asked for.
    """
    python = str(place / "bin" / "python")
    try:
        there = describe(python, (), base_environment(python))
    except KbtoolsError as error:
        raise BuildFailed(str(error)) from error
    version = {"python_version": ".".join(there.python.split(".")[:2])}
    for text in (*one.before, *one.packages):
        wanted = Requirement(text)
        if wanted.marker and not wanted.marker.evaluate(version):
            continue
        found = there.packages.get(canonicalize_name(wanted.name))
        if found is None:
            raise BuildFailed(f"`{text}` was installed, and is not there")
        if not wanted.specifier.contains(found, prereleases=True):
            raise BuildFailed(f"`{text}` was asked for, and {found} is there")


def complete_environments(home: Path) -> Iterator[tuple[str, Path]]:
    """The whole environments of a folder: name, and the build that it is a link to."""
    for link in sorted(home.glob("[!.]*")):
        if link.is_symlink() and environments.read_build_record(link):
            yield link.name, link.resolve()


def interrupted_builds(home: Path) -> list[str]:
    """Names of which a killed sync has left something, or a sync that is at work has it yet."""
    places = sorted((home / ".builds").glob("*/env-*"))
    whole_ones = {build for _, build in complete_environments(home)}
    return list(dict.fromkeys(p.parent.name for p in places if p.resolve() not in whole_ones))


def prune(home: Path, name: str, *, keep_complete: bool = False) -> int:
    """Removes an environment, and what killed syncs of it left; the bytes freed.

    Raises:
        KbtoolsError: a sync of it is at work, or it cannot be removed.
    """
    try:
        with build_lock(home, name, None):
            if not keep_complete:
                (home / name).unlink(missing_ok=True)
            return remove_leftovers(home, name)
    except BlockingIOError as error:
        raise KbtoolsError(f"toolchain {name}: a sync of it is at work; left alone") from error
    except OSError as error:
        raise KbtoolsError(f"toolchain {name}: {error}") from error


def remove_leftovers(home: Path, name: str) -> int:
    """Removes builds that no name points to; the bytes freed. The caller holds the lock."""
    freed = 0
    link = home / name
    kept = link.readlink().name if link.is_symlink() else None
    (home / ".builds" / name / "link").unlink(missing_ok=True)
    for place in (home / ".builds" / name).glob("env-*"):
        if place.name != kept:
            freed += size_of(place, only_its_own=True)
            shutil.rmtree(place)
    return freed


@contextmanager
def build_lock(home: Path, name: str, wait: Callable[[], None] | None) -> Iterator[int]:
    """Holds what one sync of a name at a time may hold; the descriptor of the lock.

    An installer inherits the descriptor: should kbtools be killed, the lock is held until the
    installer has ended, too, and nobody cleans up under its hands.

    Raises:
        BlockingIOError: somebody else holds it, and there is no `wait`.
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
