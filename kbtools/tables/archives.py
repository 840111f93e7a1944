"""Reads parts of a wheel where it lies: its metadata, the names of its members, one member."""

from __future__ import annotations

import io
import re
import tarfile
import urllib.request
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from email.parser import HeaderParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

from kbtools.config import KbtoolsError
from kbtools.tables.declared import Fact
from kbtools.toolchains.package_index import open_url
from kbtools.toolchains.pip_settings import PipSettings

BUFFER = 1 << 17
"""Bytes that a request for a part of a file asks for at least."""


class ArchiveError(KbtoolsError):
    """A wheel or a source archive cannot be read."""


class RemoteFile(io.RawIOBase):
    """A file on a server that is read in parts, each with a request (RFC 9110, section 14)."""

    def __init__(self, url: str, settings: PipSettings) -> None:
        self._url, self._settings, self._at = url, settings, 0
        request = urllib.request.Request(url, method="HEAD")
        with open_url(request, settings) as response:
            self._size = int(response.headers["Content-Length"])

    def seekable(self) -> bool:
        """It is."""
        return True

    def readable(self) -> bool:
        """It is."""
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Sets the place of the next read."""
        self._at = offset + (0, self._at, self._size)[whence]
        return self._at

    def tell(self) -> int:
        """The place of the next read."""
        return self._at

    def readinto(self, buffer: bytearray) -> int:  # type: ignore[override]
        """Fills a buffer from the place on.

        Raises:
            OSError: the server does not answer, or has no parts.
        """
        end = min(self._size, self._at + len(buffer))
        if end <= self._at:
            return 0
        headers = {"Range": f"bytes={self._at}-{end - 1}"}
        request = urllib.request.Request(self._url, headers=headers)
        with open_url(request, self._settings) as response:
            if response.status != 206:
                raise OSError(f"{self._url}: the server sends no parts of files")
            content = response.read()
        buffer[: len(content)] = content
        self._at += len(content)
        return len(content)


@contextmanager
def wheel(url: str, settings: PipSettings) -> Iterator[zipfile.ZipFile]:
    """A wheel, read where it lies.

    Raises:
        ArchiveError: it cannot be reached or is no archive.
    """
    try:
        if url.startswith("file://"):
            with zipfile.ZipFile(Path(unquote(urlsplit(url).path))) as archive:
                yield archive
        else:
            remote = RemoteFile(url, settings)
            stream = io.BufferedReader(remote, BUFFER)  # type: ignore[type-var]
            with zipfile.ZipFile(stream) as archive:
                yield archive
    except (OSError, zipfile.BadZipFile, zlib.error, EOFError, ValueError) as error:
        raise ArchiveError(f"{url}: {error}") from error


def metadata_of(archive: zipfile.ZipFile) -> str:
    """The text of a wheel's METADATA.

    Raises:
        ValueError: it has none.
    """
    names = [n for n in archive.namelist() if re.fullmatch(r"[^/]+\.dist-info/METADATA", n)]
    if len(names) != 1:
        raise ValueError("a wheel without METADATA")
    return archive.read(names[0]).decode("utf-8", "replace")


def source_metadata(url: str, settings: PipSettings) -> str:
    """The text of a source archive's PKG-INFO; empty if it has none. It is read no further.

    Raises:
        ArchiveError: it cannot be reached or is no archive.
    """
    try:
        with open_url(urllib.request.Request(url), settings) as response:
            if not url.endswith((".tar.gz", ".tgz")):
                return _zipped(response.read())
            with tarfile.open(fileobj=response, mode="r|gz") as archive:
                for member in archive:
                    if re.fullmatch(r"(\./)?[^/]+/PKG-INFO", member.name):
                        stream = archive.extractfile(member)
                        return stream.read().decode("utf-8", "replace") if stream else ""
    except (OSError, tarfile.TarError, zipfile.BadZipFile, zlib.error, EOFError) as error:
        raise ArchiveError(f"{url}: {error}") from error
    return ""


def _zipped(content: bytes) -> str:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        names = [n for n in archive.namelist() if re.fullmatch(r"[^/]+/PKG-INFO", n)]
        return archive.read(names[0]).decode("utf-8", "replace") if names else ""


def headers(text: str) -> Mapping[str, list[str]]:
    """Field of a METADATA, in small letters → its values."""
    message = HeaderParser().parsestr(text)
    fields: dict[str, list[str]] = {}
    for name, value in message.items():
        fields.setdefault(name.lower(), []).append(re.sub(r"\s+", " ", str(value)).strip())
    return fields


def facts(archive: zipfile.ZipFile, wanted: Mapping[str, Fact]) -> dict[str, tuple[str, ...]]:
    """What is wanted of a wheel, as it says it: name of a fact → its values.

    Raises:
        OSError: a part of the wheel cannot be read.
    """
    names = archive.namelist()
    values_of: dict[str, tuple[str, ...]] = {}
    for name, fact in wanted.items():
        if fact.member and fact.member not in names:
            continue
        text = archive.read(fact.member).decode("latin-1") if fact.member else "\n".join(names)
        matches = [m[1] if m.re.groups else m[0] for m in re.finditer(fact.pattern, text)]
        values = [w for m in matches for w in (m.split() if fact.split else [m]) if w]
        values_of[name] = tuple(dict.fromkeys(values))
    return values_of
