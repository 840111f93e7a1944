"""What follows from files, kept in `.kbtools/cache/` for as long as the files do not change.

A cache saves time and decides nothing: without it, or with a damaged one, every command gives the
same answer, only later. So an entry is used only if nothing that it follows from can have changed:

- each file still has the state that it had when it was read (`FileState`);
- kbtools' code, the interpreter and what is installed beside it are the same (`code_state`), and
  so is whatever else the owner of the cache names;
- the content has the digest that it was written with.

A program that writes a file and puts its modification time back is noticed: no program can set the
change time. A file that was changed less than `SETTLED` before it was read is not kept, as git does
with its index: a second change within one tick of the file system's clock would leave no trace.
What is not noticed: a clock that was set back between two changes, and code of a library that was
edited where it is installed.
"""

from __future__ import annotations

import functools
import hashlib
import os
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Generic, TypeVar

import msgspec

from kbtools.files import write_whole

SETTLED = 2_000_000_000
"""Nanoseconds without a change after which a file's time stamps tell its versions apart.

Two changes within one tick of a file system's clock leave the same time stamp: 4 ms on ext4, one
second or two elsewhere.
"""
KEPT = 16
"""Caches of one kind that are kept: as one for each configuration and each toolchain."""
DIGEST = 32
"""Bytes of the digest that a cache begins with."""

FileState = tuple[int, ...]
"""Device, inode, size, modification and change time; empty for a file that does not exist."""
Value = TypeVar("Value")


def state_of(status: os.stat_result) -> FileState:
    """Equal as long as a file was neither written nor replaced."""
    return (
        *(status.st_dev, status.st_ino, status.st_size),
        *(status.st_mtime_ns, status.st_ctime_ns),
    )


def file_state(file: str | Path) -> FileState:
    """The state of a file now.

    Raises:
        OSError: it exists, and the system cannot say.
    """
    try:
        return state_of(os.stat(file))  # noqa: PTH116 - thousands of files, no `Path` for each
    except FileNotFoundError:
        return ()


def joint_state(states: Mapping[str, FileState]) -> FileState:
    """The state of several files, by name: equal as long as each has the same name and state.

    It is settled once all of them are. Of no file at all it is empty.
    """
    if not states:
        return ()
    digest = hashlib.blake2b(repr(sorted(states.items())).encode(), digest_size=7).digest()
    last_change = max(max(state[3:], default=0) for state in states.values())
    return (0, 0, int.from_bytes(digest, "big"), last_change, last_change)


def is_settled(state: FileState, now: int) -> bool:
    """Whether a file had this state for so long that it shows each change; `now` in nanoseconds."""
    return not state or now - max(state[3:]) > SETTLED


@functools.cache
def code_state() -> bytes:
    """Equal as long as kbtools, the interpreter and what is installed for it are the same.

    Empty where kbtools was changed just now.
    """
    now = time.time_ns()
    own = dict(_python_files(Path(__file__).parent))
    if not all(is_settled(state, now) for state in own.values()):
        return b""
    # to install, upgrade or remove a distribution changes the folder that it is in
    installed = {folder: file_state(folder) for folder in sys.path if _has_distributions(folder)}
    parts = (sys.version, sys.executable, sorted(own.items()), installed)
    return hashlib.sha256(repr(parts).encode()).digest()


def _python_files(folder: Path) -> Iterator[tuple[str, FileState]]:
    """The path and the state of each Python file below a folder."""
    folders = [str(folder)]
    while folders:
        with os.scandir(folders.pop()) as entries:
            for entry in entries:
                if entry.name.endswith(".py"):
                    yield entry.path, state_of(entry.stat())
                elif entry.is_dir() and entry.name != "__pycache__":
                    folders.append(entry.path)


def _has_distributions(folder: str) -> bool:
    """Whether distributions are installed in a folder of `sys.path`."""
    try:
        with os.scandir(folder) as entries:
            return any(entry.name.endswith(".dist-info") for entry in entries)
    except OSError:  # a zip file, or a folder that does not exist
        return False


class Entry(msgspec.Struct, Generic[Value], frozen=True, array_like=True):
    """A value, and the states of the files that it follows from."""

    states: tuple[FileState, ...]
    value: Value


class Cache(Generic[Value]):
    """Values by name, each with the states of the files that it follows from.

    Two processes may use one at once: each writes it whole, and the last one stays.
    """

    def __init__(self, folder: Path, kind: str, form: type[Value], *parts: object) -> None:
        """Reads the cache; it is empty if there is none, or none that can be relied on.

        Args:
            folder: Holds the caches of a knowledge base.
            kind: What the values are, in a word.
            form: The type of a value.
            parts: What else the values follow from; their `repr` tells them apart.
        """
        code = code_state()
        name = hashlib.sha256(repr(parts).encode()).digest()
        self._key = hashlib.sha256(name + code).digest() if code else b""
        self._kind = kind
        self._file = folder / f"{kind}-{name.hex()[:32]}.msgpack"
        self._is_changed = False
        self._entries = _read(self._file, self._key, dict[str, Entry[form]]) if code else {}  # type: ignore[valid-type]

    def get(self, name: str, *states: FileState) -> Value | None:
        """The value of that name, if the files that it follows from still have these states."""
        entry = self._entries.get(name)
        return entry.value if entry and entry.states == states else None

    def put(self, name: str, value: Value, *states: FileState, now: int) -> None:
        """Keeps a value, unless a file was changed so late that its next change might not show.

        Args:
            name: Of the value.
            value: What follows from the files.
            states: Those of the files before they were read; the caller has compared them with
                those afterwards.
            now: Before the files were read, in nanoseconds.
        """
        if all(is_settled(state, now) for state in states):
            self._entries[name] = Entry(states, value)
            self._is_changed = True

    def keep_only(self, names: Iterable[str]) -> None:
        """Drops the values of all other names."""
        kept = set(names)
        for name in self._entries.keys() - kept:
            del self._entries[name]
            self._is_changed = True

    def save(self) -> None:
        """Writes the cache, if it changed. What fails is ignored: the cache only saves time."""
        if not (self._is_changed and self._key):
            return
        try:
            content = msgspec.msgpack.encode(self._entries)
            self._file.parent.mkdir(parents=True, exist_ok=True)
            write_whole(self._file, _digest(self._key, content) + content)
            caches = self._file.parent.glob(f"{self._kind}-*.msgpack")
            for old in sorted(caches, key=lambda file: file.stat().st_mtime)[:-KEPT]:
                old.unlink(missing_ok=True)
        except (OSError, ValueError):  # ValueError: the name of a file is not UTF-8
            pass


def _read(file: Path, key: bytes, form: type[Value]) -> Value:
    """The content of a cache; empty if there is none, or if it is damaged or another's."""
    try:
        content = memoryview(file.read_bytes())
        if content[:DIGEST] == _digest(key, content[DIGEST:]):
            return msgspec.msgpack.decode(content[DIGEST:], type=form)
    except (OSError, msgspec.MsgspecError):
        pass
    return msgspec.msgpack.decode(b"\x80", type=form)


def _digest(key: bytes, content: bytes | memoryview) -> bytes:
    return hashlib.blake2b(content, digest_size=DIGEST, key=key).digest()
