"""What environments take on the disk."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path


def files_below(folder: Path) -> Iterator[os.stat_result]:
    """The regular files below a folder; what vanishes meanwhile is left out."""
    folders = [folder]
    while folders:
        with suppress(OSError), os.scandir(folders.pop()) as entries:
            for entry in entries:
                with suppress(OSError):
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(Path(entry.path))
                    elif entry.is_file(follow_symlinks=False):
                        yield entry.stat(follow_symlinks=False)


def size_of(folder: Path, *, only_unshared: bool = False) -> int:
    """Bytes that a folder takes on the disk, each file once.

    Args:
        folder: of an environment.
        only_unshared: count only what removing the folder would free: no file that is also linked
            from elsewhere, as from uv's cache or from another environment.
    """
    links: dict[tuple[int, int], list[os.stat_result]] = defaultdict(list)
    for info in files_below(folder):
        links[info.st_dev, info.st_ino].append(info)
    return sum(
        infos[0].st_blocks * 512
        for infos in links.values()
        if not only_unshared or infos[0].st_nlink <= len(infos)
    )
