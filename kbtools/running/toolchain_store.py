"""The store of a toolchain: files that every snippet would make anew, made once by a program.

`[run.store]` names the program. What it leaves in its temporary folder and in its caches is kept,
shown read-only to every snippet, and linked at the same places of the snippet's own folders. Which
file is used is for the snippet's compiler to say: it finds a file by its name.
"""

from __future__ import annotations

import fcntl
import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from kbtools.config import StoreSettings

CONTENTS = "contents.json"
"""In the folder of a store: the path of each of its files, and its size in bytes."""
SHARED = ("tmp", "cache")
"""The folders of a run of which the program's files are kept."""


class StoreError(Exception):
    """A store cannot be filled or must not be used; snippets run without it."""


class StoreOrder(msgspec.Struct, frozen=True):
    """Which store is asked for."""

    settings: StoreSettings
    program: Path
    folder: Path
    """The folder of all stores."""
    toolchain: str
    """What a toolchain is: equal for two on which the program leaves the same."""
    gpu: bool = False
    """Whether the program sees the first GPU."""
    fill: bool = True
    """Whether a store that is not there is worth filling."""
    variables: dict[str, str] = {}
    """`[run.variables]`, which the program has as snippets have them."""


class OpenStore:
    """A store that is complete. It stays where it is until `close`, whatever else is filled."""

    def __init__(self, folder: Path, sizes: Mapping[str, int], lock: int) -> None:
        """Takes over a checked store.

        Args:
            folder: Of the store.
            sizes: Path of each file in it → bytes.
            lock: A descriptor of the folder, locked as one that is in use.
        """
        self.folder, self.sizes, self._lock = folder, dict(sizes), lock

    def link_into(self, scratch: Path) -> None:
        """Makes each file appear at its place in the folder of a run.

        Raises:
            OSError: the folder cannot be written.
        """
        for path in self.sizes:
            link = scratch / path
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(self.folder / path)

    def close(self) -> None:
        """Lets others remove the store; called once."""
        os.close(self._lock)


def open_store(folder: Path) -> OpenStore | None:
    """The store in this folder; None where there is none.

    Raises:
        StoreError: it must not be used: somebody else could have written it, or it is damaged.
        OSError: it cannot be read.
    """
    try:
        lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(lock, fcntl.LOCK_SH)
        if not folder.exists():  # removed before it was locked
            os.close(lock)
            return None
        for path in (folder.parent, folder, folder / CONTENTS):
            refuse_strangers(path)
        contents = (folder / CONTENTS).read_bytes()
        sizes = msgspec.json.decode(contents, type=dict[str, int])
        files = dict(files_below(folder, SHARED))
        if files != sizes:
            raise StoreError(f"{folder} is damaged; next: rm -r {folder}")
    except msgspec.MsgspecError as error:
        os.close(lock)
        raise StoreError(f"{folder / CONTENTS}: {error}; next: rm -r {folder}") from error
    except BaseException:
        os.close(lock)
        raise
    return OpenStore(folder, sizes, lock)


def files_below(folder: Path, names: Sequence[str]) -> Iterator[tuple[str, int]]:
    """Every file in these folders of a store, and its size in bytes.

    Raises:
        StoreError: one of them could have been written by somebody else, or is a link.
    """
    for name in names:
        for parent, _, files in os.walk(folder / name):
            refuse_strangers(Path(parent))
            for file in files:
                path = Path(parent, file)
                refuse_strangers(path)
                yield path.relative_to(folder).as_posix(), path.lstat().st_size


def refuse_strangers(path: Path) -> None:
    """Refuses a file or folder that another user owns or may write to, and links.

    Raises:
        StoreError: it is one.
        OSError: it is not there.
    """
    status = path.lstat()
    if status.st_uid != os.geteuid():
        raise StoreError(f"{path} belongs to user {status.st_uid}; next: remove it")
    if not stat.S_ISDIR(status.st_mode) and not stat.S_ISREG(status.st_mode):
        raise StoreError(f"{path} is a link or a special file; next: remove it")
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        mode = f"{stat.S_IMODE(status.st_mode):o}"
        raise StoreError(f"others may write {path} (mode {mode}); next: remove it")
