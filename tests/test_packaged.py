"""The knowledge base that came with kbtools: how it is unpacked, and what goes wrong with that."""

from __future__ import annotations

import io
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

import pytest

from kbtools import config, packaged

SETTINGS = b'[knowledge-base]\nname = "packed"\nprefix = "P"\n'


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's cache, while kbtools is installed with an archive of two files."""
    archive = tmp_path / "packaged.tar.xz"
    with tarfile.open(archive, "w:xz") as packed:
        for name, content in (("kbtools.toml", SETTINGS), ("kb/P0001-a.md", b"text")):
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            packed.addfile(entry, io.BytesIO(content))
    monkeypatch.setattr(packaged, "ARCHIVE", archive)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    packaged._for_this_process.cache_clear()
    return tmp_path / "cache" / "kbtools"


def test_it_is_unpacked_once(cache: Path, tmp_path: Path) -> None:
    """Away from any base the packed one is served, from the cache; nothing else is left there."""
    settings = packaged.settings_of(tmp_path)
    assert settings.knowledge_base.name == "packed"
    assert (settings.articles / "P0001-a.md").read_bytes() == b"text"
    [base] = cache.iterdir()
    assert settings.root == base
    (base / "mark").touch()
    assert packaged.folder() == base
    assert (base / "mark").exists()


def test_the_base_around_comes_first(cache: Path, tmp_path: Path) -> None:
    """In a knowledge base, that one is served, and nothing is unpacked."""
    (tmp_path / "kbtools.toml").write_bytes(SETTINGS.replace(b"packed", b"mine"))
    (tmp_path / "below").mkdir()
    assert packaged.settings_of(tmp_path / "below").knowledge_base.name == "mine"
    assert not cache.exists()


def test_what_a_tidying_program_removed_comes_back(cache: Path) -> None:
    """A base of which an article is missing is unpacked again: half a base gives wrong answers."""
    base = packaged.folder()
    (base / "kb" / "P0001-a.md").unlink()
    assert packaged.folder() == base
    assert (base / "kb" / "P0001-a.md").read_bytes() == b"text"


def test_another_archive_is_another_folder(cache: Path) -> None:
    """After an upgrade the new articles are served; a few old bases stay for other versions."""
    names = set()
    for number in range(packaged.KEPT + 2):
        with tarfile.open(packaged.ARCHIVE, "w:xz") as packed:
            entry = tarfile.TarInfo("kb/P0001-a.md")
            entry.size = number
            packed.addfile(entry, io.BytesIO(b"x" * number))
        base = packaged.folder()
        names.add(base.name)
        assert (base / "kb" / "P0001-a.md").stat().st_size == number
    assert len(names) == packaged.KEPT + 2
    assert len(list(cache.iterdir())) == packaged.KEPT


@pytest.mark.parametrize("home", ["a file", "no home"])
def test_without_a_cache(cache: Path, home: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A user without a home, or with a full or read-only one, gets a temporary base."""
    if home == "a file":
        cache.parent.write_text("no folder")
    else:
        monkeypatch.delenv("XDG_CACHE_HOME")

        def nobody() -> Path:
            raise RuntimeError("Could not determine home directory.")

        monkeypatch.setattr(Path, "home", nobody)
    base = packaged.folder()
    assert config.find(base).knowledge_base.name == "packed"
    assert packaged.folder() == base


def test_nowhere_to_unpack(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no folder can be written, the message says which variable helps."""
    cache.parent.write_text("no folder")
    monkeypatch.setattr(tempfile, "tempdir", str(cache))
    with pytest.raises(packaged.PackagedBaseError, match="next: set XDG_CACHE_HOME"):
        packaged.folder()


def test_a_broken_archive(cache: Path) -> None:
    """A damaged installation is named, with the next step, and leaves nothing in the cache."""
    packaged.ARCHIVE.write_bytes(packaged.ARCHIVE.read_bytes()[:-40])
    with pytest.raises(packaged.PackagedBaseError, match="next: install kbtools again"):
        packaged.folder()
    assert list(cache.iterdir()) == []


def test_a_python_without_lzma(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some Pythons are built without lzma; the message says so."""
    monkeypatch.setitem(sys.modules, "lzma", None)
    with pytest.raises(packaged.PackagedBaseError, match="a Python with the module lzma"):
        packaged.folder()


def test_installed_without_a_base(cache: Path) -> None:
    """Where no base came with kbtools, the message says how to start one."""
    packaged.ARCHIVE.unlink()
    with pytest.raises(config.ConfigError, match="came without a knowledge base"):
        packaged.folder()


def test_many_at_once(cache: Path) -> None:
    """Workers that all start at the same time serve the same, whole base."""
    program = (
        "import pathlib, sys; from kbtools import packaged;"
        " packaged.ARCHIVE = pathlib.Path(sys.argv[1]); print(packaged.folder())"
    )
    words = [sys.executable, "-c", program, str(packaged.ARCHIVE)]
    workers = [subprocess.Popen(words, stdout=subprocess.PIPE, text=True) for _ in range(6)]
    answers = [worker.communicate(timeout=60)[0] for worker in workers]
    assert [worker.returncode for worker in workers] == [0] * 6
    assert {*answers} == {f"{base}\n" for base in cache.iterdir()}
    assert len({*answers}) == 1
