"""The files of Pagefind's bundle: what they hold, and how they are read."""

from __future__ import annotations

import zlib
from pathlib import Path

import cbor2
import msgspec

from kbtools.config import KbtoolsError

MAGIC = b"pagefind_dcd"


class SearchIndexError(KbtoolsError):
    """Pagefind is missing or fails, or its bundle is incomplete."""


class Language(msgspec.Struct, frozen=True):
    """What `pagefind-entry.json` says about one language of the site."""

    hash: str
    page_count: int
    wasm: str | None = None


class BundleEntry(msgspec.Struct, frozen=True):
    """`pagefind-entry.json`, the file that a browser asks for first."""

    version: str
    languages: dict[str, Language]


class BundleMeta(msgspec.Struct, frozen=True, array_like=True):
    """A `.pf_meta` file: the names of the other files of one language."""

    version: str
    pages: tuple[tuple[str, int], ...]
    """Name of a fragment, and the number of words on its page."""
    chunks: tuple[tuple[str, str, str], ...]
    """First word, last word, and the name of the chunk of the index that holds them."""


def meta_of(file: Path) -> BundleMeta:
    """The list of a language's files.

    Raises:
        SearchIndexError: It is missing, cut short, or something else.
    """
    try:
        return msgspec.convert(cbor2.loads(content_of(file)), type=BundleMeta)
    except (cbor2.CBORDecodeError, msgspec.MsgspecError) as error:
        raise SearchIndexError(f"the search index is incomplete: {file.name}: {error}") from error


def content_of(file: Path) -> bytes:
    """A file of the bundle, which is compressed with gzip, without the mark at its beginning.

    Raises:
        SearchIndexError: It is missing or cut short.
    """
    unpacker = zlib.decompressobj(wbits=31)
    try:
        content = unpacker.decompress(file.read_bytes())
    except (OSError, zlib.error) as error:
        raise SearchIndexError(f"the search index is incomplete: {error}") from error
    if not unpacker.eof or not content.startswith(MAGIC):
        raise SearchIndexError(f"the search index is incomplete: {file.name} is cut short")
    return content[len(MAGIC) :]
