"""The search index: Pagefind over the built pages, and a check that its bundle is whole."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import zlib
from collections.abc import Iterable
from pathlib import Path

import msgspec

from kbtools.config import KbtoolsError

BUNDLE = "pagefind"
SETTINGS = (
    *("--root-selector", "article"),
    # a character here is part of a word: so `wy_fast` and `sm_90a` are found as they are written
    *("--include-characters", "_#'.:-"),
    *("--exclude-selectors", ".headerlink"),
)
MAGIC = b"pagefind_dcd"
HINT = "install what makes the search index: pip install 'kbtools[site]'"


class Language(msgspec.Struct, frozen=True):
    """What Pagefind says of one language of the site."""

    hash: str
    page_count: int
    wasm: str | None = None


class Entry(msgspec.Struct, frozen=True):
    """The file that a browser asks for first."""

    version: str
    languages: dict[str, Language]


class Fragment(msgspec.Struct, frozen=True):
    """What the index has of a page."""

    url: str


def index(site: Path, addresses: Iterable[str] = ()) -> dict[str, int]:
    """Makes the index of a built site, in its folder `pagefind`; language → pages in it.

    `addresses` are of pages that must be found, relative to the site, as in `KB0002/`. An index
    that was there is replaced by a whole one or not at all.

    Raises:
        KbtoolsError: Pagefind is missing or fails, or what it wrote is not whole.
    """
    fresh = site / f".{BUNDLE}"
    shutil.rmtree(fresh, ignore_errors=True)
    command = [sys.executable, "-m", "pagefind", "--silent", "--site", str(site)]
    command += ["--output-subdir", fresh.name, *SETTINGS]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            said = (done.stdout + done.stderr).strip()
            hint = f"\n{HINT}" if re.search("No module named|Could not find any", said) else ""
            raise KbtoolsError(f"pagefind failed:\n{said}{hint}")
        found = check(fresh, addresses)
        shutil.rmtree(site / BUNDLE, ignore_errors=True)
        fresh.rename(site / BUNDLE)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    return found


def check(bundle: Path, addresses: Iterable[str] = ()) -> dict[str, int]:
    """Whether a bundle is whole; language → pages in it.

    Raises:
        KbtoolsError: a file is missing or cut short, or one of `addresses` is not in it.
    """
    try:
        entry = msgspec.json.decode((bundle / "pagefind-entry.json").read_bytes(), type=Entry)
    except (OSError, msgspec.MsgspecError) as error:
        raise KbtoolsError(f"the search index is not whole: {error}") from error
    if not (bundle / "pagefind.js").is_file():
        raise KbtoolsError("the search index is not whole: pagefind.js is not there")
    found = {
        page.strip("/")
        for name, one in entry.languages.items()
        for page in _pages(bundle, name, one)
    }
    lacking = sorted(one for one in addresses if one.strip("/") not in found)
    if lacking:
        raise KbtoolsError(f"the search index is not whole: it lacks {', '.join(lacking[:5])}")
    return {name: one.page_count for name, one in entry.languages.items()}


def _pages(bundle: Path, name: str, language: Language) -> list[str]:
    meta = _unpacked(bundle / f"pagefind.{language.hash}.pf_meta")
    _unpacked(bundle / f"wasm.{language.wasm or 'unknown'}.pagefind")
    prefix = language.hash.rpartition("_")[0].encode() + b"_"
    pages = []
    # the names of all files, as CBOR has texts: a byte with the length, and the text
    for match in re.finditer(rb"([\x60-\x77])" + re.escape(prefix), meta):
        start = match.start() + 1
        part = meta[start : start + match[1][0] - 0x60].decode()
        fragment = bundle / "fragment" / f"{part}.pf_fragment"
        if fragment.exists():
            pages.append(_decoded(fragment).url)
        else:
            _unpacked(bundle / "index" / f"{part}.pf_index")
    if len(pages) != language.page_count:
        count = f"{len(pages)} of {language.page_count} pages in {name}"
        raise KbtoolsError(f"the search index is not whole: {count}")
    return pages


def _decoded(file: Path) -> Fragment:
    try:
        return msgspec.json.decode(_unpacked(file), type=Fragment)
    except msgspec.MsgspecError as error:
        raise KbtoolsError(f"the search index is not whole: {file.name}: {error}") from error


def _unpacked(file: Path) -> bytes:
    unpacker = zlib.decompressobj(wbits=31)
    try:
        content = unpacker.decompress(file.read_bytes())
    except (OSError, zlib.error) as error:
        raise KbtoolsError(f"the search index is not whole: {error}") from error
    if not unpacker.eof or not content.startswith(MAGIC):
        raise KbtoolsError(f"the search index is not whole: {file.name} is cut short")
    return content[len(MAGIC) :]
