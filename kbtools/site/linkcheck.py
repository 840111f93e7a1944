"""Checks that every address in a built site leads somewhere: to a file, and to an anchor in it.

`mkdocs build --strict` sees the links of Markdown; this sees all of the HTML, the theme's too.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from posixpath import dirname, normpath
from urllib.parse import SplitResult, unquote, urlsplit

import msgspec
from selectolax.lexbor import LexborHTMLParser

from kbtools.config import KbtoolsError

SELECTOR = "[id], a[name], [href], [src], [srcset], [poster], object[data], form[action]"
"""The elements that have an anchor or an address."""
IN_CSS = re.compile(r"""url\(\s*["']?([^"')]+)|@import\s+["']([^"']+)""")
LOADED_BY_LINK = {
    *("stylesheet", "icon", "manifest", "preload", "modulepreload", "prefetch", "preconnect"),
    *("dns-prefetch", "apple-touch-icon", "mask-icon"),
}
"""Values of `rel` on a `link` for which a browser loads its address."""
OUTSIDE = ("http", "https", "mailto", "tel", "")
NOT_FOUND = "404.html"
"""Served for any address, so its own links cannot be relative."""

DEEPEST = 5000
"""Levels of nested elements that are read: the parser takes the square of them, here 0.05 s."""
TAG = re.compile(rb"<(/?)([a-z][a-z0-9]*)", re.IGNORECASE)
VOID = frozenset(b"area base br col embed hr img input link meta source track wbr".split())
"""Elements without an end tag."""


class NestingError(KbtoolsError):
    """The elements of a page are nested too deep for it to be read."""


class Broken(msgspec.Struct, frozen=True, order=True):
    """An address on a page that leads nowhere, or to where it must not lead."""

    page: str
    """Relative to the site, as in `KB0002/index.html`."""
    address: str
    why: str


class PageLinks(msgspec.Struct, frozen=True):
    """The anchors of one page, and its addresses, each with whether a browser loads it."""

    anchors: frozenset[str]
    addresses: frozenset[tuple[str, bool]]


class Target(msgspec.Struct, frozen=True):
    """Where an address leads."""

    file: str = ""
    """Relative to the site; empty for another site."""
    fragment: str = ""
    why: str = ""
    """Why the address is broken; empty if it is not."""


def check(site: Path, url: str = "") -> tuple[Broken, ...]:
    """The broken addresses of every page and style sheet of a site, in the order of the pages.

    Args:
        site: the folder of the built site.
        url: where the site will be, if that is known. Addresses that begin with it belong to the
            site, and its path is that of the page for what is not found.
    """
    files = {
        f"{folder}/{name}".removeprefix(f"{site}/")
        for folder, _, names in os.walk(site)
        for name in names
    }
    anchors: dict[str, frozenset[str]] = {}
    to_anchors: list[tuple[str, str, Target]] = []
    broken: list[Broken] = []
    resolver = Resolver(files, url)
    for name in sorted(files):
        if name.endswith(".html"):
            with open(f"{site}/{name}", "rb") as file:  # noqa: PTH123 - thousands of them
                html = file.read()
            try:
                page = take_apart(html)
            except NestingError as error:
                broken.append(Broken(name, "", str(error)))
                continue
            anchors[name] = page.anchors
        elif name.endswith(".css"):
            page = PageLinks(frozenset(), frozenset(_in_css((site / name).read_text("utf-8"))))
        else:
            continue
        folder = dirname(name)
        for address, loaded in page.addresses:
            target = resolver.resolve(name, folder, address, loaded)
            if target.why:
                broken.append(Broken(name, address, target.why))
            elif target.fragment and target.file:
                to_anchors.append((name, address, target))
    broken += _missing_anchors(anchors, to_anchors)
    return tuple(sorted(broken))


def take_apart(html: bytes) -> PageLinks:
    """The anchors and the addresses of a page.

    Raises:
        NestingError: its elements are nested too deep.
    """
    if _is_too_deep(html):
        raise NestingError(f"elements are nested more than {DEEPEST} deep")
    anchors: set[str] = set()
    addresses: set[tuple[str, bool]] = set()
    for element in LexborHTMLParser(html).css(SELECTOR):
        attributes = {name: value or "" for name, value in element.attributes.items()}
        if "id" in attributes:
            anchors.add(attributes["id"])
        if element.tag == "a" and "name" in attributes:
            anchors.add(attributes["name"])
        addresses.update(_addresses(element.tag or "", attributes))
    return PageLinks(frozenset(anchors), frozenset(addresses))


def _is_too_deep(html: bytes) -> bool:
    """Whether elements are nested more than `DEEPEST` deep, as far as counting tags can tell.

    Markdown makes such pages of nested lists and quotations. HTML that is made to deceive the
    count cannot come from an article.
    """
    if html.count(b"<") <= DEEPEST:
        return False
    nested: Counter[bytes] = Counter()
    depth = 0
    for end, tag in TAG.findall(html):
        name = tag.lower()
        if name in VOID or (end and not nested[name]):
            continue
        step = -1 if end else 1
        nested[name] += step
        depth += step
        if depth > DEEPEST:
            return True
    return False


def _addresses(tag: str, attributes: dict[str, str]) -> Iterator[tuple[str, bool]]:
    """The addresses of an element, each with whether a browser loads it."""
    if "href" in attributes:
        kinds = set(attributes.get("rel", "").lower().split())
        yield attributes["href"], tag == "link" and bool(kinds & LOADED_BY_LINK)
    for name in ("src", "poster", "data"):
        if name in attributes and (name != "data" or tag == "object"):
            yield attributes[name], True
    for candidate in attributes.get("srcset", "").split(","):
        if candidate.strip():
            yield candidate.split()[0], True
    if tag == "form" and attributes.get("action"):
        yield attributes["action"], False


def _in_css(text: str) -> Iterator[tuple[str, bool]]:
    """The addresses of a style sheet, all of which are loaded."""
    for in_url, in_import in IN_CSS.findall(text):
        address = in_url or in_import
        if not address.startswith("#"):  # of an SVG, not of a page
            yield address, True


class Resolver:
    """Finds where the addresses of a site's pages lead; an address that pages share, once."""

    def __init__(self, files: set[str], url: str) -> None:
        """`files` are all files of the site, relative to it; `url` is where it will be."""
        self._files = files
        self._url = url.rstrip("/")
        self._root = urlsplit(url).path.rstrip("/") + "/"
        self._targets: dict[tuple[str, str, bool], Target] = {}

    def resolve(self, page: str, folder: str, address: str, loaded: bool) -> Target:
        """Where an address leads.

        Args:
            page: the page that it stands on, relative to the site.
            folder: the folder of the page, relative to the site.
            address: as it is written.
            loaded: whether a browser loads it with the page.
        """
        if address.startswith("#"):
            return Target(page, unquote(address[1:]))
        address = address.strip()
        if not address or address[0] in "#?":
            return Target(page, unquote(address.partition("#")[2]))
        if page == NOT_FOUND:
            return self._resolve("", address, loaded, anywhere=True)
        # an address that climbs is looked up from where it has climbed to: pages share those
        while folder and address.startswith("../") and address[3:4] != "/":
            folder, address = dirname(folder), address[3:]
        key = (folder, address, loaded)
        if key not in self._targets:
            self._targets[key] = self._resolve(folder, address, loaded)
        return self._targets[key]

    def _resolve(
        self, folder: str, address: str, loaded: bool, *, anywhere: bool = False
    ) -> Target:
        """Where an address leads; `anywhere`: its page is served for any address."""
        try:
            parts = _split(address)
        except ValueError as error:
            return Target(why=f"not an address: {error}")
        if self._url and address.startswith(self._url + "/"):
            inside = address[len(self._url) + 1 :].partition("#")[0].partition("?")[0]
            return self._file(inside, parts.fragment)
        if parts.scheme == "data" and loaded:
            return Target()
        if parts.scheme not in OUTSIDE:
            return Target(why=f"an address must not begin with `{parts.scheme}:`")
        if parts.scheme or parts.netloc:
            return Target(why="loaded from another origin" if loaded else "")
        path = unquote(parts.path) or "./"
        if path.startswith("/"):
            path = normpath(path) + "/" * (path.endswith(("/", "/.")) and normpath(path) != "/")
            if not anywhere:
                return Target(why="not relative: it would break under another base path")
            if not path.startswith(self._root):
                return Target(why=f"outside of the site, whose path is {self._root}")
            return self._file(path[len(self._root) :], parts.fragment)
        inside = normpath(f"{folder or '.'}/{path}")
        if inside.startswith(".."):
            return Target(why="outside of the site")
        slash = "/" if path.endswith(("/", "/.", "/..")) or path in (".", "..") else ""
        return self._file(("" if inside == "." else inside) + slash, parts.fragment)

    def _file(self, path: str, fragment: str) -> Target:
        """The file that a path of the site leads to, itself or the `index.html` of a folder."""
        path = path.removeprefix("/")
        if path in self._files:
            return Target(path, unquote(fragment))
        index = f"{path.rstrip('/')}/index.html".removeprefix("/")
        if index not in self._files:
            return Target(why="there is no such file")
        if path and not path.endswith("/"):
            return Target(why="the address of a page must end with `/`")
        return Target(index, unquote(fragment))


@lru_cache(65536)
def _split(address: str) -> SplitResult:
    return urlsplit(address.strip())


def _missing_anchors(
    anchors: dict[str, frozenset[str]], links: Iterable[tuple[str, str, Target]]
) -> Iterator[Broken]:
    """The links to an anchor that its page does not have.

    Args:
        anchors: page → its anchors.
        links: page, address, and where the address leads.
    """
    for page, address, target in links:
        fragment = target.fragment
        if fragment == "top" or fragment.startswith(":~:") or target.file not in anchors:
            continue
        if fragment not in anchors[target.file]:
            yield Broken(page, address, f"{target.file} has no anchor `{fragment}`")
