"""Every address in a built site leads somewhere: to a file, and to an anchor that is there.

`mkdocs build --strict` sees the links of Markdown; this sees all of the HTML, the theme's too.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from html import unescape
from pathlib import Path
from posixpath import dirname, normpath
from urllib.parse import SplitResult, unquote, urlsplit

import msgspec

# A tag, after what holds nothing of interest: text, the end of an element, a tag none of whose
# attributes leads anywhere or can be led to. A `>` within quotes ends no tag. What repeats can be
# read in one way only and `++` goes back over nothing, so that no page takes longer than its
# length. No group has it: up to Python 3.11.4 one with `*+` matches what it should not
# (python/cpython#106052), and this would go over every tag. A thousand at once: each is kept
# in memory until the match ends.
NEXT = re.compile(
    rb"""[^<]*+(?:
      (?:</[a-zA-Z][^<>]*+>
        |<(?!(?i:script|style))[a-zA-Z][a-zA-Z0-9]*+
          (?:[ ](?!(?i:id|name|href|src|srcset|poster|data|action)[= >])
            [a-zA-Z-]++(?:="[^"]*+")?)*/?>
      )[^<]*+){0,1000}
    (?:<([a-zA-Z][\w:-]*+)((?:[^>"']++|"[^"]*+"|'[^']*+')*)>)?""",
    re.VERBOSE,
)
OPENS = re.compile(rb"<[a-z]", re.IGNORECASE)
RAW = {name: re.compile(rb"</%b\b" % name, re.IGNORECASE) for name in (b"script", b"style")}
"""Elements whose content is no markup, and what ends it."""
# every attribute, so that no value is taken for one
ATTRIBUTE = re.compile(r"""([^\s"'>/=]+)(?:\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+)))?""")
IN_CSS = re.compile(r"""url\(\s*["']?([^"')]+)|@import\s+["']([^"']+)""")
LOADED_BY_LINK = {
    *("stylesheet", "icon", "manifest", "preload", "modulepreload", "prefetch", "preconnect"),
    *("dns-prefetch", "apple-touch-icon", "mask-icon"),
}
"""What a `link` may be that makes a browser ask for its address."""
COMMON = 1000
"""Characters of the attributes of a tag that may be on many pages."""
LOADING = {"src", "srcset", "poster", "data"}
OUTSIDE = ("http", "https", "mailto", "tel", "")
NOT_FOUND = "404.html"
"""Served for any address, so its own links cannot be relative."""


class Broken(msgspec.Struct, frozen=True, order=True):
    """An address on a page that leads nowhere, or where none may."""

    page: str
    """Relative to the site, as in `KB0002/index.html`."""
    address: str
    why: str


class Found(msgspec.Struct, frozen=True):
    """What one page holds: its anchors, and its addresses, each with whether it is loaded."""

    anchors: frozenset[str]
    addresses: frozenset[tuple[str, bool]]


def check(site: Path, url: str = "") -> tuple[Broken, ...]:
    """The broken addresses of every page and style sheet of a site, in the order of the pages.

    `url` is where the site will be, as far as that is known: addresses that begin with it are
    its own, and its path is that of the page for what is not found.
    """
    files = {
        f"{folder}/{name}".removeprefix(f"{site}/")
        for folder, _, names in os.walk(site)
        for name in names
    }
    anchors: dict[str, frozenset[str]] = {}
    wanted: list[tuple[str, str, str, str]] = []
    broken: list[Broken] = []
    resolve = _resolver(files, url)
    for name in sorted(files):
        if name.endswith(".html"):
            with open(f"{site}/{name}", "rb") as file:  # noqa: PTH123 - thousands of them
                found = take_apart(file.read())
            anchors[name] = found.anchors
        elif name.endswith(".css"):
            found = Found(frozenset(), frozenset(_in_css((site / name).read_text("utf-8"))))
        else:
            continue
        folder = dirname(name)
        for address, loaded in found.addresses:
            if address.startswith("#"):
                target, fragment, why = name, unquote(address[1:]), ""
            else:
                target, fragment, why = resolve(name, folder, address, loaded)
            if why:
                broken.append(Broken(name, address, why))
            elif fragment and target:
                wanted.append((name, address, target, fragment))
    broken += _missing_anchors(anchors, wanted)
    return tuple(sorted(broken))


def take_apart(html: bytes) -> Found:
    """The anchors and the addresses of a page.

    Bytes: most of a page is never looked at again, and decoding costs as much as reading it.
    """
    anchors: set[str] = set()
    addresses: set[tuple[str, bool]] = set()
    for tag, text in _tags(html):
        found, led = _take(tag, text) if len(text) < COMMON else _take.__wrapped__(tag, text)
        if found:
            anchors.update(found)
        if led:
            addresses.update(led)
    return Found(frozenset(anchors), frozenset(addresses))


@lru_cache(8192)
def _take(tag: bytes, attributes: bytes) -> tuple[tuple[str, ...], tuple[tuple[str, bool], ...]]:
    """The anchors and addresses of a tag; most tags are on every page."""
    text = attributes.decode("utf-8", "replace")
    held = {
        name.lower(): unescape(one or two or three)
        for name, one, two, three in ATTRIBUTE.findall(text)
    }
    anchors = [held["id"]] if "id" in held else []
    if tag == b"a" and "name" in held:
        anchors.append(held["name"])
    return tuple(anchors), tuple(_addresses(tag, held))


def _tags(html: bytes) -> Iterator[tuple[bytes, bytes]]:
    """The tags that open an element, and their attributes; what a browser takes for text is not."""
    at = 0
    while found := NEXT.match(html, at):
        name, at = (found[1] or b"").lower(), found.end()
        if name:
            if found[2]:
                yield name, found[2]
            if name in RAW:
                end = RAW[name].search(html, at)
                at = end.start() if end else len(html)
        elif at == len(html):
            return
        elif html.startswith(b"<!--", at):
            end_of_comment = html.find(b"-->", at)
            at = end_of_comment + 3 if end_of_comment >= 0 else len(html)
        elif OPENS.match(html, at):
            return  # a tag that never ends takes all that follows with it
        else:
            at += 1


def _addresses(tag: bytes, held: dict[str, str]) -> Iterator[tuple[str, bool]]:
    if "href" in held:
        kinds = set(held.get("rel", "").lower().split())
        yield held["href"], tag == b"link" and bool(kinds & LOADED_BY_LINK)
    for name in LOADING - {"srcset"}:
        if name in held and (name != "data" or tag == b"object"):
            yield held[name], True
    for candidate in held.get("srcset", "").split(","):
        if candidate.strip():
            yield candidate.split()[0], True
    if tag == b"form" and held.get("action"):
        yield held["action"], False


def _in_css(text: str) -> Iterator[tuple[str, bool]]:
    for one, two in IN_CSS.findall(text):
        if not (one or two).startswith("#"):  # of an SVG, not of a page
            yield one or two, True


Resolver = Callable[[str, str, str, bool], tuple[str, str, str]]


def _resolver(files: set[str], url: str) -> Resolver:
    """From page, its folder, address and whether it is loaded: file, fragment, why there is none.

    An address that climbs is looked up from where it has climbed to: what the pages of a site have
    in common is looked up once.
    """
    root = urlsplit(url).path.rstrip("/") + "/"
    known: dict[tuple[str, str, bool], tuple[str, str, str]] = {}

    def resolve(page: str, folder: str, address: str, loaded: bool) -> tuple[str, str, str]:
        address = address.strip()
        if not address or address[0] in "#?":
            return page, unquote(address.partition("#")[2]), ""
        if page == NOT_FOUND:
            return _resolve(files, url, root, "", address, loaded, anywhere=True)
        while folder and address.startswith("../") and address[3:4] != "/":
            folder, address = dirname(folder), address[3:]
        key = (folder, address, loaded)
        if key not in known:
            known[key] = _resolve(files, url, root, folder, address, loaded)
        return known[key]

    return resolve


def _resolve(
    files: set[str],
    url: str,
    root: str,
    folder: str,
    address: str,
    loaded: bool,
    *,
    anywhere: bool = False,
) -> tuple[str, str, str]:
    """`anywhere`: the page is served for any address."""
    try:
        parts = _split(address)
    except ValueError as error:
        return "", "", f"not an address: {error}"
    if url and address.startswith(url.rstrip("/") + "/"):
        path = root + address[len(url.rstrip("/")) + 1 :].partition("#")[0].partition("?")[0]
        return _file(files, path[len(root) :], parts.fragment)
    if parts.scheme == "data" and loaded:
        return "", "", ""
    if parts.scheme not in OUTSIDE:
        return "", "", f"an address must not begin with `{parts.scheme}:`"
    if parts.scheme or parts.netloc:
        return "", "", "loaded from another origin" if loaded else ""
    path = unquote(parts.path) or "./"
    if path.startswith("/"):
        path = normpath(path) + "/" * (path.endswith(("/", "/.")) and normpath(path) != "/")
        if not anywhere:
            return "", "", "not relative: it would break under another base path"
        if not path.startswith(root):
            return "", "", f"outside of the site, whose path is {root}"
        return _file(files, path[len(root) :], parts.fragment)
    whole = normpath(f"{folder or '.'}/{path}")
    if whole.startswith(".."):
        return "", "", "outside of the site"
    slash = "/" if path.endswith(("/", "/.", "/..")) or path in (".", "..") else ""
    return _file(files, ("" if whole == "." else whole) + slash, parts.fragment)


@lru_cache(65536)
def _split(address: str) -> SplitResult:
    return urlsplit(address.strip())


def _file(files: set[str], path: str, fragment: str) -> tuple[str, str, str]:
    path = path.removeprefix("/")
    if path in files:
        return path, unquote(fragment), ""
    index = f"{path.rstrip('/')}/index.html".removeprefix("/")
    if index in files:
        if path and not path.endswith("/"):
            return "", "", "a page's address ends with `/`"
        return index, unquote(fragment), ""
    return "", "", "nothing is there"


def _missing_anchors(
    anchors: dict[str, frozenset[str]], wanted: Iterable[tuple[str, str, str, str]]
) -> Iterator[Broken]:
    for page, address, target, fragment in wanted:
        if fragment == "top" or fragment.startswith(":~:") or target not in anchors:
            continue
        if fragment not in anchors[target]:
            yield Broken(page, address, f"{target} has no anchor `{fragment}`")
