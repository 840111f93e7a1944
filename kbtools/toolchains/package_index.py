"""Which releases of a package does the package index have? The Simple API of PEP 503 and PEP 691.

The addresses are those that pip is configured with. An index may answer with JSON or with HTML; it
may also be a folder (`file://`), in which each project has a folder with an `index.html` or files.
"""

from __future__ import annotations

import base64
import datetime
import platform
import ssl
import urllib.error
import urllib.request
from collections.abc import Iterable, Iterator
from html.parser import HTMLParser
from http.client import HTTPResponse
from pathlib import Path
from typing import cast
from urllib.parse import unquote, urlsplit, urlunsplit

import msgspec
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.tags import sys_tags
from packaging.utils import (
    InvalidSdistFilename,
    InvalidWheelFilename,
    canonicalize_name,
    parse_sdist_filename,
    parse_wheel_filename,
)
from packaging.version import Version

from kbtools.config import KbtoolsError
from kbtools.toolchains.pip_settings import PipSettings

JSON = "application/vnd.pypi.simple.v1+json"
ACCEPT = f"{JSON}, application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.01"
SECONDS = 60
"""To wait for an answer of an index."""


class PackageIndexError(KbtoolsError):
    """A package index cannot be reached, cannot be read, or has no release of a package."""


class IndexFile(msgspec.Struct, frozen=True, rename="kebab"):
    """A file of a project, as the Simple API lists it."""

    filename: str
    requires_python: str | None = None
    yanked: bool | str = False
    upload_time: datetime.datetime | None = None
    """When it was published, where the index says so (PEP 700)."""
    url: str = ""
    """Where it is; an index may write it relative to its page."""
    size: int = 0
    """Bytes; 0 where the index does not say."""
    hashes: dict[str, str] = {}
    """Name of an algorithm, as in `sha256` → the digest in hexadecimal."""


class ProjectPage(msgspec.Struct, frozen=True):
    """A project's answer in JSON."""

    files: tuple[IndexFile, ...]


def releases(package: str, settings: PipSettings) -> tuple[str, ...]:
    """The final releases of a package that can be installed here, old to new.

    A release counts if it has a file that is not yanked, and fits the Python and the machine that
    kbtools runs on: a wheel for it, or a source archive.

    Args:
        package: name of the distribution.
        settings: say which indexes and folders are asked; what they have is added up.

    Raises:
        PackageIndexError: an index cannot be reached or read, or none has the package.
    """
    name = canonicalize_name(package)
    pages = [files_of(f"{index.rstrip('/')}/{name}/", settings) for index in settings.indexes]
    pages += [files_of(_as_url(place), settings) for place in settings.find_links]
    versions = {version for files in pages for version in _installable(files, name)}
    final = sorted(version for version in versions if not version.is_prerelease)
    if not final:
        places = ", ".join(map(_public, (*settings.indexes, *settings.find_links))) or "no index"
        raise PackageIndexError(f"no release of {package} that can be installed here in {places}")
    return tuple(map(str, final))


def release_days(package: str, settings: PipSettings) -> dict[Version, datetime.date | None]:
    """The final releases of a package for any machine → the day on which each was published.

    Args:
        package: Name of the distribution.
        settings: Say which indexes and folders are asked.

    Returns:
        Nothing, if no index has the package; None for a day that no index tells.

    Raises:
        PackageIndexError: an index cannot be reached or read.
    """
    name = canonicalize_name(package)
    urls = [f"{index.rstrip('/')}/{name}/" for index in settings.indexes]
    days: dict[Version, datetime.date | None] = {}
    for file in (f for url in urls for f in files_of(url, settings)):
        version = _version_of(file)
        if version and not version.is_prerelease and not file.yanked:
            day = file.upload_time.date() if file.upload_time else None
            earlier = days.get(version)
            days[version] = min(filter(None, (day, earlier)), default=None)
    return days


def _version_of(file: IndexFile) -> Version | None:
    """The version that a file's name has; None if it is no wheel and no source archive."""
    try:
        if file.filename.endswith(".whl"):
            return parse_wheel_filename(file.filename)[1]
        return parse_sdist_filename(file.filename)[1]
    except (InvalidWheelFilename, InvalidSdistFilename):
        return None


def files_of(url: str, settings: PipSettings) -> tuple[IndexFile, ...]:
    """The files that a page or folder lists; none if there is no such page.

    Raises:
        PackageIndexError: it cannot be reached or read.
    """
    if url.startswith("file://"):
        return _files_in(Path(unquote(urlsplit(url).path)))
    request = urllib.request.Request(_public(url), headers={"Accept": ACCEPT})
    if credentials := _credentials(url):  # not to be sent to where the index redirects us
        request.add_unredirected_header("Authorization", credentials)
    try:
        with open_url(request, settings) as response:
            content, kind = response.read(), response.headers.get_content_type()
    except urllib.error.HTTPError as error:
        if error.code in (404, 410):
            return ()
        raise PackageIndexError(f"the package index {_public(url)} answers {error}") from error
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", error)
        raise PackageIndexError(
            f"the package index {_public(url)} cannot be reached: {reason}"
        ) from error
    try:
        if kind == JSON or kind == "application/json":
            return msgspec.json.decode(content, type=ProjectPage).files
        return tuple(links_in(content.decode("utf-8")))
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise PackageIndexError(f"{_public(url)} is not a page of an index: {error}") from error


def open_url(request: urllib.request.Request, settings: PipSettings) -> HTTPResponse:
    """The answer to a request, with the certificates that pip is configured with.

    Raises:
        OSError: nobody answers, or the answer is an error.
    """
    context = ssl.create_default_context(cafile=settings.cert or None)
    response = urllib.request.urlopen(request, timeout=SECONDS, context=context)
    return cast(HTTPResponse, response)


def links_in(html: str) -> Iterator[IndexFile]:
    """The files that a page of HTML links to, as PEP 503 describes it."""
    parser = _Links()
    parser.feed(html)
    parser.close()
    for attributes in parser.links:
        url, _, fragment = (attributes.get("href") or "").partition("#")
        algorithm, equals, digest = fragment.partition("=")
        yield IndexFile(
            unquote(urlsplit(url).path.rpartition("/")[2]),
            attributes.get("data-requires-python"),
            "data-yanked" in attributes,
            url=url,
            hashes={algorithm: digest} if equals else {},
        )


class _Links(HTMLParser):
    """Collects the attributes of every link."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[dict[str, str | None]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "a":
            self.links.append(dict(attrs))


def _files_in(place: Path) -> tuple[IndexFile, ...]:
    """The files of a folder: those that its `index.html` links to, or those in it."""
    page = place / "index.html" if place.is_dir() else place
    try:
        if page.is_file():
            return tuple(links_in(page.read_text("utf-8")))
        return tuple(
            IndexFile(file.name, url=file.absolute().as_uri(), size=file.stat().st_size)
            for file in place.iterdir()
        )
    except (FileNotFoundError, NotADirectoryError):
        return ()
    except (OSError, UnicodeDecodeError) as error:
        raise PackageIndexError(f"{place}: {error}") from error


def _installable(files: Iterable[IndexFile], name: str) -> Iterator[Version]:
    """The versions of a project's files that can be installed here."""
    tags = set(sys_tags())
    for file in files:
        try:
            if file.filename.endswith(".whl"):
                project, version, _, wheel_tags = parse_wheel_filename(file.filename)
                fits = not wheel_tags.isdisjoint(tags)
            else:
                project, version = parse_sdist_filename(file.filename)
                fits = True
        except (InvalidWheelFilename, InvalidSdistFilename):
            continue  # an egg, an installer of old, or a link to somewhere else
        if fits and project == name and not file.yanked and _admits_python(file):
            yield version


def _admits_python(file: IndexFile) -> bool:
    try:
        return platform.python_version() in SpecifierSet(file.requires_python or "")
    except InvalidSpecifier:
        return True  # as pip has it


def _as_url(place: str) -> str:
    return place if "://" in place else Path(place).absolute().as_uri()


def _credentials(url: str) -> str:
    """User and password of an address as a header has them; empty if it has none."""
    parts = urlsplit(url)
    if not parts.username:
        return ""
    pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
    return f"Basic {base64.b64encode(pair.encode()).decode()}"


def _public(url: str) -> str:
    """An address without user and password, as it may be shown."""
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
