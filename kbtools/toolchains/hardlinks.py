"""What environments weigh, and the files that several of them can share."""

from __future__ import annotations

import filecmp
import os
import stat
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

LEAST = 1 << 16
"""Bytes: below that, a link saves nothing worth the reading. Nearly all the weight is in
libraries of 10 MB and more."""


def files(place: Path) -> Iterator[tuple[Path, os.stat_result]]:
    """The regular files below a folder; what vanishes meanwhile is left out."""
    folders = [place]
    while folders:
        with suppress(OSError), os.scandir(folders.pop()) as entries:
            for entry in entries:
                with suppress(OSError):
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(Path(entry.path))
                    elif entry.is_file(follow_symlinks=False):
                        yield Path(entry.path), entry.stat(follow_symlinks=False)


def size_of(place: Path, *, only_its_own: bool = False) -> int:
    """Bytes that a folder takes on the disk, each file once.

    With `only_its_own`, those that removing it would free: no file that has a name elsewhere.
    """
    names: dict[tuple[int, int], list[os.stat_result]] = defaultdict(list)
    for _, info in files(place):
        names[info.st_dev, info.st_ino].append(info)
    return sum(
        infos[0].st_blocks * 512
        for infos in names.values()
        if not only_its_own or infos[0].st_nlink <= len(infos)
    )


def share(place: Path, others: Iterable[Path]) -> int:
    """Makes a file of `place` that another environment has, too, a hard link to that one.

    Only what is the same byte for byte, with the same permissions, on the same file system. Not
    Python's own files: their compiled forms carry the time at which the source was written, and
    a snippet that finds them outdated cannot write new ones.

    Returns the bytes saved.
    """
    known: dict[tuple[int, int, int], list[Path]] = defaultdict(list)
    for other in others:
        for file, info in files(other):
            if _counts(file, info):
                known[_kind(info)].append(file)
    saved = 0
    for file, info in files(place):
        if not _counts(file, info) or info.st_nlink > 1:
            continue
        for twin in known.get(_kind(info), ()):
            with suppress(OSError):  # pruned meanwhile, or a file system with no more links
                if filecmp.cmp(file, twin, shallow=False):
                    aside = file.with_name(f".{file.name}.link")
                    aside.hardlink_to(twin)
                    aside.replace(file)
                    saved += info.st_blocks * 512
                    break
    return saved


def _counts(file: Path, info: os.stat_result) -> bool:
    return info.st_size >= LEAST and file.suffix not in (".py", ".pyc")


def _kind(info: os.stat_result) -> tuple[int, int, int]:
    return info.st_dev, info.st_size, stat.S_IMODE(info.st_mode)
