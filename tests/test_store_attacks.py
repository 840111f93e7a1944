"""No snippet and no other user changes what a store shows; one that is damaged is not used."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest
from bases import Base, fence
from warm import COLD, MADE, WARM, contents, stores

ATTACKS = {
    "writes": 'open(link, "wb")',
    "writes-where-it-is": 'open(target, "r+b").write(b"x")',
    "appends": 'open(link, "ab").write(b"x")',
    "truncates": "os.truncate(link, 0)",
    "permits": "os.chmod(target, 0o666)",
    "dates": "os.utime(target, (0, 0))",
    "removes": "os.unlink(target)",
    "renames": 'os.rename(target, target + ".old")',
    "puts-another-in-its-place": """
        open(link + ".new", "wb").write(b"poison")
        try:
            os.replace(link + ".new", target)
        except OSError as error:
            if error.errno != 18:  # on another file system: a copy does the same
                raise
            import shutil

            shutil.copyfile(link + ".new", target)
    """,
    "adds-a-file": 'open(os.path.dirname(target) + "/another", "wb")',
    "adds-a-folder": 'os.mkdir(os.path.dirname(target) + "/folder")',
    "moves-its-folder": 'os.rename(os.path.dirname(target), os.path.dirname(target) + ".old")',
    "links-and-writes": """
        os.link(target, link + ".hard")
        open(link + ".hard", "ab").write(b"x")
    """,
    "goes-through-its-descriptors": """
        descriptor = os.open(link, os.O_RDONLY)
        open(f"/proc/self/fd/{descriptor}", "r+b").write(b"x")
    """,
    "goes-through-a-descriptor-of-the-folder": """
        folder = os.open(os.path.dirname(target), os.O_PATH | os.O_DIRECTORY)
        os.unlink("header", dir_fd=folder)
    """,
    "maps-it": """
        import mmap

        with open(link, "r+b") as file:
            mmap.mmap(file.fileno(), 0)[0:1] = b"x"
    """,
    "mounts-over-it": """
        import ctypes

        libc = ctypes.CDLL(None, use_errno=True)
        if libc.unshare(0x10000000 | 0x00020000):  # a user namespace, in which it is root
            raise OSError(ctypes.get_errno(), "unshare")
        name = os.fsencode(os.path.dirname(target))
        if libc.mount(None, name, None, 4096 | 32, None):  # writable again
            if libc.mount(b"poison", name, b"tmpfs", 0, None):
                raise OSError(ctypes.get_errno(), "mount")
        open(target, "wb").write(b"x")
    """,
    "makes-its-mount-writable": """
        import ctypes

        libc = ctypes.CDLL(None, use_errno=True)
        libc.unshare(0x10000000 | 0x00020000)
        fields = (ctypes.c_uint64 * 4)(0, 1, 0, 0)
        libc.syscall(442, -100, os.fsencode(os.path.dirname(target)), 0, fields, 32)
        open(target, "r+b").write(b"x")
    """,
}
"""What a snippet may do to the store that it finds. Each ends in an OSError where it is stopped."""
PREAMBLE = """
import colorsys, os, tempfile

link = os.path.join(tempfile.gettempdir(), "shared", "header")
target = os.path.realpath(link)
assert target != link
"""
NEEDS_POWERS = ("mounts-over-it", "makes-its-mount-writable")
"""Attacks that change no file of their own user, and are tried within only."""


def test_no_attack_reaches_it(filled: Base) -> None:
    """Whatever a snippet tries with its store, the store stays as it is, and so does its run."""
    before = contents(filled)
    fences = [
        fence(f"python repro fails=OSError id={name}", PREAMBLE + textwrap.dedent(code))
        for name, code in ATTACKS.items()
    ]
    filled.article(*fences)
    done = filled.verify("--all", "-j", "2")
    wrong = {
        name: done.result(name) for name in ATTACKS if done.result(name)["verdict"] != "reproduced"
    }
    assert not wrong
    assert contents(filled) == before
    filled.article(fence("python control id=c1", WARM))
    assert filled.verify("--all").verdicts == {"KB0001/c1": "holds"}


@pytest.mark.parametrize("name", sorted(set(ATTACKS) - set(NEEDS_POWERS)))
def test_the_attack_is_one(filled: Base, tmp_path: Path, name: str) -> None:
    """Outside of the sandbox each attack changes what the link leads to."""
    shutil.copytree(stores(filled)[0] / "tmp" / "shared", tmp_path / "store")
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared" / "header").symlink_to(tmp_path / "store" / "header")
    for path in (tmp_path / "store", tmp_path / "store" / "header"):
        path.chmod(0o755)
    before = state(tmp_path / "store")
    subprocess.run(
        [sys.executable, "-c", PREAMBLE + textwrap.dedent(ATTACKS[name])],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        check=True,
    )
    assert state(tmp_path / "store") != before


def state(folder: Path) -> dict[str, object]:
    """What there is to be seen of a folder."""
    if not folder.exists():
        return {}
    seen = {path.name: path.lstat() for path in folder.iterdir()}
    return {
        name: (
            status.st_mode,
            status.st_mtime,
            (folder / name).is_file() and (folder / name).read_bytes(),
        )
        for name, status in seen.items()
    }


def test_poison_in_its_own_cache(filled: Base) -> None:
    """A snippet may put another file in place of its own link; nobody else finds that file."""
    poison = "os.unlink(link)\nopen(link, 'wb').write(b'poison')\n"
    filled.article(
        fence(
            "python control id=poisons", f"{PREAMBLE}{poison}assert open(link).read() == 'poison'"
        ),
        fence("python control id=next", WARM),
    )
    assert set(filled.verify("--all", "-j", "1").verdicts.values()) == {"holds"}
    assert contents(filled)["tmp/shared/header"][0] == MADE


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_store_of_somebody_else(filled: Base) -> None:
    """It is not used, whichever part of it belongs to another user, and the warning says so."""
    [store] = stores(filled)
    filled.article(fence("python control id=c1", COLD))
    for path in (store, store.parent, store / "contents.json", store / "tmp" / "shared" / "header"):
        os.chown(path, 12345, -1)
        done = filled.verify("--all")
        assert done.verdicts == {"KB0001/c1": "holds"}, path
        assert f"{path} belongs to user 12345; next: remove it" in done.err
        os.chown(path, 0, -1)
    filled.article(fence("python control id=c1", WARM))
    assert filled.verify("--all").verdicts == {"KB0001/c1": "holds"}


def spoil_mode(store: Path) -> str:
    """Lets everybody write to the folder of a file."""
    (store / "tmp" / "shared").chmod(0o777)
    return "others may write"


def spoil_size(store: Path) -> str:
    """Cuts a file short."""
    file = store / "tmp" / "shared" / "header"
    file.chmod(0o644)
    file.write_bytes(b"made")
    return "is damaged; next: rm -r"


def spoil_kind(store: Path) -> str:
    """Replaces a file by a link to one of the same size."""
    file = store / "tmp" / "shared" / "header"
    file.rename(store.parent / "elsewhere")
    file.symlink_to(store.parent / "elsewhere")
    return "is a link or a special file"


def spoil_list(store: Path) -> str:
    """Adds a file that the program did not leave."""
    (store / "cache" / "added").write_bytes(b"x")
    return "is damaged; next: rm -r"


def spoil_contents(store: Path) -> str:
    """Makes its table of contents unreadable."""
    (store / "contents.json").write_text("{", "utf-8")
    return "contents.json: "


@pytest.mark.parametrize("spoil", [spoil_mode, spoil_size, spoil_kind, spoil_list, spoil_contents])
def test_a_store_that_is_not_as_it_was_filled(filled: Base, spoil: Callable[[Path], str]) -> None:
    """It is not used, and the warning says what is wrong with it."""
    reason = spoil(stores(filled)[0])
    filled.article(fence("python control id=c1", COLD))
    done = filled.verify("--all")
    assert done.verdicts == {"KB0001/c1": "holds"}
    assert done.err.count("StoreWarning") == 1 and reason in done.err
