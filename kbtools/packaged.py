"""The knowledge base that came with kbtools, for commands that are called away from any other.

A wheel has it as one archive, of a third of its files' size; it is unpacked once, into the user's
cache. A checkout and an editable installation have it around the package.
"""

from __future__ import annotations

import atexit
import hashlib
import shutil
import tarfile
import tempfile
from functools import cache
from io import BytesIO
from pathlib import Path

from kbtools import __version__, config
from kbtools.config import Config, ConfigError, KbtoolsError
from kbtools.files import cache_folder

ARCHIVE = Path(__file__).parent / "packaged.tar.xz"
COMPLETE = ".complete"
"""Holds the number of articles' files that were unpacked; written last."""
KEPT = 3
"""Unpacked bases that stay in the cache: of other versions, which other environments may have."""


class PackagedBaseError(KbtoolsError):
    """The knowledge base in the installed kbtools cannot be unpacked."""


def is_around(start: Path) -> bool:
    """Whether a folder is in a knowledge base."""
    folder = start.resolve()
    return any((parent / config.FILE).is_file() for parent in (folder, *folder.parents))


def settings_of(start: Path) -> Config:
    """The configuration of the knowledge base around `start`, else of that which came with kbtools.

    Raises:
        ConfigError: there is none, or it cannot be decoded.
        PackagedBaseError: the archive cannot be unpacked.
    """
    return config.find(start) if is_around(start) else config.find(folder())


def folder() -> Path:
    """The folder of the knowledge base that came with kbtools, unpacked now if it has to be.

    Raises:
        ConfigError: none came with it.
        PackagedBaseError: the archive cannot be unpacked.
    """
    if not ARCHIVE.is_file():
        if is_around(ARCHIVE.parent):
            return ARCHIVE.parent
        raise ConfigError(
            f"this kbtools came without a knowledge base; go to one, or start one with:"
            f" kbtools init DIR ({ARCHIVE} is missing)"
        )
    content = ARCHIVE.read_bytes()
    name = f"base-{__version__}-{hashlib.sha256(content).hexdigest()[:16]}"
    try:
        home = cache_folder()
        if not _is_complete(home / name):
            home.mkdir(parents=True, exist_ok=True)
            _unpack(home / name)
            _forget_old(home)
        return home / name
    except OSError:  # the cache cannot be written
        return _for_this_process(name)


def _is_complete(base: Path) -> bool:
    """Whether all files are there: a program that tidies caches may have removed some."""
    try:
        return int((base / COMPLETE).read_text()) == len(list((base / "kb").iterdir()))
    except (OSError, ValueError):
        return False


def _unpack(base: Path) -> None:
    """Unpacks the archive beside `base`, and renames it: nobody sees half of it.

    Raises:
        OSError: the files cannot be written.
        PackagedBaseError: the archive cannot be read.
    """
    temporary = Path(tempfile.mkdtemp(dir=base.parent, prefix=".base-"))
    try:
        _extract(temporary)
        temporary.chmod(0o755)
        if base.exists() and not _is_complete(base):
            shutil.rmtree(base)
        try:
            temporary.rename(base)
        except OSError:
            if not _is_complete(base):  # else another process was faster
                raise
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _extract(target: Path) -> None:
    try:
        import lzma
    except ImportError as error:
        raise PackagedBaseError(
            f"{ARCHIVE}: this Python cannot unpack it ({error}); next: use a Python with the module"
            " lzma, or go to a checkout of a knowledge base"
        ) from error
    try:
        # tarfile itself takes an archive that is cut off for its end
        content = lzma.decompress(ARCHIVE.read_bytes())
    except lzma.LZMAError as error:
        raise PackagedBaseError(f"{ARCHIVE}: {error}; next: install kbtools again") from error
    with tarfile.open(fileobj=BytesIO(content)) as archive:
        for member in archive:
            stream = archive.extractfile(member)
            if stream:
                file = target / member.name
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(stream.read())
    (target / COMPLETE).write_text(str(len(list((target / "kb").iterdir()))))


@cache
def _for_this_process(name: str) -> Path:
    """The base in a temporary folder, which is removed at exit."""
    try:
        home = Path(tempfile.mkdtemp(prefix="kbtools-"))
        atexit.register(shutil.rmtree, home, ignore_errors=True)
        _unpack(home / name)
    except OSError as error:
        raise PackagedBaseError(
            f"the knowledge base that came with kbtools cannot be unpacked: {error};"
            " next: set XDG_CACHE_HOME to a folder that can be written"
        ) from error
    return home / name


def _forget_old(home: Path) -> None:
    bases = sorted(home.glob("base-*"), key=lambda base: base.stat().st_mtime)
    for base in bases[:-KEPT]:
        shutil.rmtree(base, ignore_errors=True)
