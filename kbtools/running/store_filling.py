"""How a store is filled: in a folder of its own, which is renamed when it is whole."""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import stat
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from kbtools.config import Running
from kbtools.running.environment import snippet_environment
from kbtools.running.model import Run
from kbtools.running.toolchain_store import CONTENTS, SHARED, StoreError, StoreOrder

LOOK = 0.1
"""Seconds between two looks at whether to stop."""


def fill(
    order: StoreOrder, name: str, python: str, base: Mapping[str, str], stop: threading.Event
) -> None:
    """Runs the program and keeps what it leaves. The caller holds the lock of `filling`.

    Args:
        order: The program, and the folder of all stores.
        name: Of the store.
        python: The toolchain's interpreter.
        base: The environment that the toolchain's snippets share.
        stop: Ends the program.

    Raises:
        StoreError: the program failed, took too long, or was stopped.
        OSError: its folder cannot be written.
    """
    remove_others(order.folder, name)
    staging = Path(tempfile.mkdtemp(prefix=".", dir=order.folder))
    try:
        for folder in ("work", *SHARED):
            (staging / folder).mkdir()
        run_program(order, python, base, staging, stop)
        sizes = settle(staging)
        for leftover in staging.iterdir():
            if leftover.name not in SHARED:
                shutil.rmtree(leftover) if leftover.is_dir() else leftover.unlink()
        (staging / CONTENTS).write_bytes(msgspec.json.encode(sizes))
        (staging / CONTENTS).chmod(0o444)
        sync(staging / CONTENTS)
        staging.chmod(0o755)
        staging.rename(order.folder / name)
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def run_program(
    order: StoreOrder, python: str, base: Mapping[str, str], staging: Path, stop: threading.Event
) -> None:
    """Runs the program of a store to its end, in an environment like that of a snippet.

    Args:
        order: The program and its settings.
        python: The toolchain's interpreter.
        base: The environment that the toolchain's snippets share.
        staging: The folder that stands for a run's.
        stop: Ends the program.

    Raises:
        StoreError: it failed, took too long, or was stopped.
    """
    settings = order.settings
    run = Run(source="", language="python", display_path="", gpus=(0,) if order.gpu else ())
    base = {**base, **settings.environment}
    running = Running(variables=order.variables)
    environment = snippet_environment(base, run, staging, staging / "work", running)
    deadline = time.monotonic() + settings.timeout
    with (staging / "output").open("wb") as output:
        process = subprocess.Popen(
            [python, str(order.program)],
            cwd=staging / "work",
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        code = None
        try:
            while code is None and not stop.is_set() and time.monotonic() < deadline:
                with suppress(subprocess.TimeoutExpired):
                    code = process.wait(LOOK)
        finally:  # what it has started must not write on
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    if code == 0:
        return
    if stop.is_set():
        raise StoreError("cancelled")
    ended = f"exit code {code}" if code is not None else f"time limit of {settings.timeout:g} s"
    text = (staging / "output").read_text("utf-8", "replace").strip()
    raise StoreError(f"{order.program.name}: {ended}\n{text[-1000:]}")


def settle(staging: Path) -> dict[str, int]:
    """Leaves of what a program made the files to be shared, on the disk and read-only.

    An empty file is a lock, which has to be each run's own. Links and special files would lead a
    snippet out of the store.

    Returns:
        Path of each file that is left → bytes.

    Raises:
        OSError: a file cannot be written, as on a full disk.
    """
    sizes: dict[str, int] = {}
    for top in SHARED:
        for parent, folders, names in os.walk(staging / top, topdown=False):
            for name in (*names, *folders):
                path = Path(parent, name)
                status = path.lstat()
                if stat.S_ISREG(status.st_mode) and status.st_size and status.st_nlink == 1:
                    path.chmod(0o444 | (status.st_mode & 0o111))
                    sync(path)
                    sizes[path.relative_to(staging).as_posix()] = status.st_size
                elif stat.S_ISDIR(status.st_mode):
                    path.chmod(0o755)
                    with suppress(OSError):  # it holds files
                        path.rmdir()
                else:
                    path.unlink()
            Path(parent).chmod(0o755)
    return dict(sorted(sizes.items()))


def sync(path: Path) -> None:
    """Has the system write a file to the disk.

    Raises:
        OSError: it cannot.
    """
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def filling(stores: Path, stop: threading.Event) -> Iterator[None]:
    """Waits until no other process fills a store here, and holds others back.

    Args:
        stores: The folder of all stores, made if it is not there.
        stop: Ends the waiting.

    Raises:
        StoreError: the waiting was ended.
        OSError: the folder cannot be made or locked.
    """
    if not stores.exists():
        stores.mkdir(parents=True)
        stores.chmod(0o755)  # whatever the umask: nobody else may exchange a store
    lock = os.open(stores, os.O_RDONLY | os.O_DIRECTORY)
    try:
        while not locked(lock):
            if stop.wait(LOOK):
                raise StoreError("cancelled")
        yield
    finally:
        os.close(lock)


def locked(descriptor: int) -> bool:
    """Takes the lock of a folder for this process alone; False where another process has it."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def remove_others(stores: Path, name: str) -> None:
    """Removes what a killed process left, and this interpreter's former stores if not in use."""
    interpreter = name.partition("-")[0]
    for folder in stores.iterdir():
        if folder.name.startswith("."):
            shutil.rmtree(folder, ignore_errors=True)
        elif folder.name.startswith(f"{interpreter}-") and folder.name != name:
            with suppress(OSError):
                lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
                try:
                    if locked(lock):
                        shutil.rmtree(folder, ignore_errors=True)
                finally:
                    os.close(lock)
