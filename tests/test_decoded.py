"""Evidence files are decoded once, and again as soon as they have changed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kbtools import cache
from kbtools.evidence.decoded import DecodedFiles
from kbtools.evidence.rows import Row


class Decoder:
    """Decodes nothing, and keeps the contents that it was called with."""

    def __init__(self) -> None:
        self.contents: list[bytes] = []

    def __call__(self, content: bytes, file: str) -> tuple[Row, ...]:
        """No rows, whatever the content is."""
        self.contents.append(content)
        return ()


@pytest.fixture
def settled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files count as settled the moment that they are written."""
    monkeypatch.setattr(cache, "SETTLED", -(10**12))


@pytest.mark.usefixtures("settled")
def test_a_file_is_decoded_once(tmp_path: Path) -> None:
    """Reading a file again that has not changed does not decode it again."""
    decoder = Decoder()
    files = DecodedFiles(decoder)
    (tmp_path / "KB0001.jsonl").write_bytes(b"first")
    for _ in range(3):
        files.rows(tmp_path / "KB0001.jsonl")
    assert decoder.contents == [b"first"]


@pytest.mark.usefixtures("settled")
def test_another_process_replaces_a_file(tmp_path: Path) -> None:
    """A file that another process renamed into place is read, with the size and time of before."""
    decoder = Decoder()
    files = DecodedFiles(decoder)
    file = tmp_path / "KB0001.jsonl"
    file.write_bytes(b"first")
    files.rows(file)
    status = file.stat()
    times = (status.st_atime_ns, status.st_mtime_ns)
    code = (
        "import os, pathlib, sys; new = pathlib.Path(sys.argv[1] + '.new');"
        f" new.write_bytes(b'later'); os.utime(new, ns={times}); new.replace(sys.argv[1])"
    )
    subprocess.run([sys.executable, "-c", code, str(file)], check=True)
    assert file.stat().st_mtime_ns == status.st_mtime_ns
    files.rows(file)
    assert decoder.contents == [b"first", b"later"]


@pytest.mark.usefixtures("settled")
def test_a_file_that_was_edited_in_place(tmp_path: Path) -> None:
    """A file is read again though its size and its modification time are those of before."""
    decoder = Decoder()
    files = DecodedFiles(decoder)
    file = tmp_path / "KB0001.jsonl"
    file.write_bytes(b"first")
    files.rows(file)
    status = file.stat()
    while file.stat().st_ctime_ns == status.st_ctime_ns:  # the file system's clock has ticks
        file.write_bytes(b"later")
        os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
    files.rows(file)
    assert decoder.contents == [b"first", b"later"]


def test_a_file_that_was_just_written_is_not_kept(tmp_path: Path) -> None:
    """Two changes within one tick of the clock have one time stamp, so a new file is read again."""
    decoder = Decoder()
    files = DecodedFiles(decoder)
    file = tmp_path / "KB0001.jsonl"
    file.write_bytes(b"first")
    files.rows(file)
    files.rows(file)
    assert decoder.contents == [b"first", b"first"]


@pytest.mark.usefixtures("settled")
def test_memory_is_bounded(tmp_path: Path) -> None:
    """The files used least recently are dropped; a file beyond the limit is not kept at all."""
    decoder = Decoder()
    files = DecodedFiles(decoder, limit=10)
    for name, content in (("a", b"aaaaa"), ("b", b"bbbbb"), ("c", b"ccccc"), ("d", b"d" * 11)):
        (tmp_path / name).write_bytes(content)
    for name in "abacabdd":
        files.rows(tmp_path / name)
    read = [content[:1].decode() for content in decoder.contents]
    assert "".join(read) == "abcbdd"


@pytest.mark.usefixtures("settled")
def test_a_file_that_was_removed(tmp_path: Path) -> None:
    """A file that is no longer there has no rows, though it was decoded before."""
    files = DecodedFiles(Decoder())
    file = tmp_path / "KB0001.jsonl"
    file.write_bytes(b"first")
    files.rows(file)
    file.unlink()
    with pytest.raises(FileNotFoundError):
        files.rows(file)
