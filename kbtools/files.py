"""Where files of our own are kept, and how one is written so that nobody ever sees half of it."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def cache_folder() -> Path:
    """The folder of what can be made again; it need not exist, and it may be impossible to make."""
    if base := os.environ.get("XDG_CACHE_HOME"):
        return Path(base) / "kbtools"
    try:
        return Path.home() / ".cache" / "kbtools"
    except RuntimeError:  # a user whom the system does not know, in a container
        return Path(os.devnull) / "kbtools"


def write_whole(file: Path, content: bytes) -> None:
    """Writes a temporary file beside `file`, then renames it into place.

    Two processes may do so at once, as each has a temporary file of its own. The content is on
    the disk before the rename, so that a power cut leaves either the old file or the new one.

    Raises:
        OSError: the file could not be written, and is as it was.
    """
    descriptor, name = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}.")
    temporary = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.chmod(0o644)  # mkstemp allows the owner alone; a report or a row is for everyone
        temporary.replace(file)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
