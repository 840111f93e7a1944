"""The search index: Pagefind over the built pages, and a check that its bundle is complete."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import msgspec

from kbtools.installation import command_for
from kbtools.site import search_packing
from kbtools.site.search_bundle import (
    BundleEntry,
    Language,
    SearchIndexError,
    content_of,
    meta_of,
)

BUNDLE = "pagefind"
SETTINGS = (
    *("--root-selector", "article"),
    # a character here is part of a word: so `wy_fast` and `sm_90a` are found as they are written
    *("--include-characters", "_#'.:-"),
    *("--exclude-selectors", ".headerlink"),
)


class Fragment(msgspec.Struct, frozen=True):
    """What the index has of a page."""

    url: str


def index(site: Path, addresses: Iterable[str] = ()) -> dict[str, int]:
    """Makes the index of a built site, in its folder `pagefind`; language → number of pages.

    The last index is replaced by a complete new one, or stays.

    Args:
        site: the folder of the built site.
        addresses: pages that the index must have, relative to the site, as in `KB0002/`.

    Raises:
        SearchIndexError: Pagefind is missing or fails, or the bundle that it wrote is incomplete.
    """
    fresh = site / f".{BUNDLE}"
    shutil.rmtree(fresh, ignore_errors=True)
    command = [sys.executable, "-m", "pagefind", "--silent", "--site", str(site)]
    command += ["--output-subdir", fresh.name, *SETTINGS]
    try:
        run = subprocess.run(command, capture_output=True, text=True, check=False)
        if run.returncode:
            output = (run.stdout + run.stderr).strip()
            is_missing = re.search("No module named|Could not find any", output)
            step = f"\ninstall what makes the search index: {command_for('site')}"
            hint = step if is_missing else ""
            raise SearchIndexError(f"pagefind failed:\n{output}{hint}")
        search_packing.pack(fresh)
        counts = check(fresh, addresses)
        shutil.rmtree(site / BUNDLE, ignore_errors=True)
        fresh.rename(site / BUNDLE)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    return counts


def check(bundle: Path, addresses: Iterable[str] = ()) -> dict[str, int]:
    """Checks that a bundle is complete; language → number of pages.

    Pagefind is known to leave a truncated bundle and exit with 0.

    Args:
        bundle: the folder that Pagefind wrote.
        addresses: pages that the bundle must have, relative to the site, as in `KB0002/`.

    Raises:
        SearchIndexError: a file is missing or cut short, or one of `addresses` is not in the index.
    """
    try:
        entry = msgspec.json.decode((bundle / "pagefind-entry.json").read_bytes(), type=BundleEntry)
    except (OSError, msgspec.MsgspecError) as error:
        raise SearchIndexError(f"the search index is incomplete: {error}") from error
    if not (bundle / "pagefind.js").is_file():
        raise SearchIndexError("the search index is incomplete: pagefind.js is missing")
    indexed = {
        address.strip("/")
        for name, language in entry.languages.items()
        for address in _addresses(bundle, name, language)
    }
    missing = sorted(address for address in addresses if address.strip("/") not in indexed)
    if missing:
        raise SearchIndexError(f"the search index is incomplete: it lacks {', '.join(missing[:5])}")
    return {name: language.page_count for name, language in entry.languages.items()}


def _addresses(bundle: Path, name: str, language: Language) -> list[str]:
    """The addresses of the pages in one language, after every file of it was read."""
    meta = meta_of(bundle / f"pagefind.{language.hash}.pf_meta")
    content_of(bundle / f"wasm.{language.wasm or 'unknown'}.pagefind")
    for _, _, chunk in meta.chunks:
        content_of(bundle / "index" / f"{chunk}.pf_index")
    if len(meta.pages) != language.page_count:
        count = f"{len(meta.pages)} of {language.page_count} pages in {name}"
        raise SearchIndexError(f"the search index is incomplete: {count}")
    fragments = (bundle / "fragment" / f"{fragment}.pf_fragment" for fragment, _ in meta.pages)
    return [_fragment(file).url for file in fragments]


def _fragment(file: Path) -> Fragment:
    try:
        return msgspec.json.decode(content_of(file), type=Fragment)
    except msgspec.MsgspecError as error:
        raise SearchIndexError(f"the search index is incomplete: {file.name}: {error}") from error
