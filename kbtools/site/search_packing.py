"""Pagefind's index in smaller pieces: a search on a phone does not pay for a base's growth.

For each word Pagefind lists every place on every page, and a browser fetches the words that it asks
for in chunks. Both are meant for sites of some size: with 5,000 articles the places of one frequent
word were 281 kB. A word that is on many pages tells few of them apart, so fewer of its places are
kept, and a chunk holds fewer words.
"""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import cbor2
import msgspec

from kbtools.site.search_bundle import MAGIC, SearchIndexError, content_of

PLACES = 8
"""Places of a word that are kept of a page at most; of each weight that words have on that page."""
PLACES_IN_ALL = 4_000
"""Places of a word on all pages, from which on fewer than `PLACES` are kept of each page."""
CHUNK = 24_000
"""Bytes of a chunk before compression, about; one frequent word may need more."""
DIGEST = 10
"""Characters of a digest in the name of a file; Pagefind's have 7 for a chunk."""
HINT = "kbtools knows the index of Pagefind 1.5: pip install 'pagefind[extended]>=1.5,<1.6'"


Posting = list[Any]
"""A page, as its distance from the one before it; the places of a word there, and in its title.

Before the places that have one weight stands a negative number for that weight. The first of them
counts from the page's beginning, each other one from the place before it.
"""
Word = tuple[str, list[Posting], list[Any]]
"""A word of the index, where it is, and how it is written with accents."""
Chunk = tuple[list[Word]]
"""A file of words, in the order of their texts."""


class Meta(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A `.pf_meta` file, the list of a language's files."""

    version: str
    pages: list[Any]
    chunks: list[tuple[str, str, str]]
    """First word, last word, and the name of the file that has them."""
    filters: list[Any]
    sorts: list[Any]
    fields: list[Any]


def pack(bundle: Path) -> None:
    """Replaces the chunks of every language with smaller ones.

    Args:
        bundle: The folder that Pagefind wrote.

    Raises:
        SearchIndexError: A file is missing, cut short, or not as this version of kbtools knows it.
    """
    file = bundle / "pagefind-entry.json"
    try:
        entry = msgspec.json.decode(file.read_bytes(), type=dict[str, Any])
        for name, language in entry["languages"].items():
            language["hash"] = _pack(bundle, name, language["hash"])
    except (OSError, KeyError, cbor2.CBORDecodeError, msgspec.MsgspecError) as error:
        raise SearchIndexError(f"the search index is incomplete: {error}\n{HINT}") from error
    file.write_bytes(msgspec.json.encode(entry))


def _pack(bundle: Path, language: str, hash_: str) -> str:
    """Packs the chunks of a language, given the hash of its list of files; the list's new hash."""
    listing = bundle / f"pagefind.{hash_}.pf_meta"
    meta = msgspec.convert(cbor2.loads(content_of(listing)), type=Meta)
    files = [bundle / "index" / f"{name}.pf_index" for _, _, name in meta.chunks]
    chunks = [
        (first, last, f"{language}_{_write(bundle / 'index', language, '.pf_index', content)}")
        for first, last, content in repacked(map(content_of, files))
    ]
    content = cbor2.dumps(msgspec.to_builtins(msgspec.structs.replace(meta, chunks=chunks)))
    digest = _write(bundle, f"pagefind.{language}", ".pf_meta", content)
    for replaced in (*files, listing):
        replaced.unlink()
    return f"{language}_{digest}"


def repacked(chunks: Iterable[bytes]) -> Iterator[tuple[str, str, bytes]]:
    """Chunks with fewer places, in smaller pieces: the first word, the last word, the content.

    Args:
        chunks: The contents of a language's chunks, decompressed and without their mark, in order.

    Raises:
        cbor2.CBORDecodeError: A chunk is not CBOR.
        msgspec.ValidationError: A chunk is not as Pagefind 1.5 writes it.
    """
    words: list[list[Any]] = []
    size = 0
    for content in chunks:
        (longer,) = msgspec.convert(cbor2.loads(content), type=Chunk)
        for text, postings, variants in longer:
            shorter = with_fewer_places(postings)
            places = sum(len(posting[1]) + len(posting[2]) for posting in shorter)
            size += len(text) + 4 * len(shorter) + 2 * places
            if words and size > CHUNK:
                yield words[0][0], words[-1][0], cbor2.dumps([words])
                words, size = [], len(text) + 4 * len(shorter) + 2 * places
            words.append([text, shorter, variants])
    if words:
        yield words[0][0], words[-1][0], cbor2.dumps([words])


def with_fewer_places(postings: list[Posting]) -> list[Posting]:
    """Postings with at most `PLACES` places of each weight; fewer if the word is on many pages."""
    most = min(PLACES, max(1, PLACES_IN_ALL // max(1, len(postings))))
    return [
        posting
        if len(posting[1]) <= most + 1
        else [posting[0], list(_first(posting[1], most)), posting[2]]
        for posting in postings
    ]


def _first(places: Iterable[int], most: int) -> Iterator[int]:
    """The first places of each weight."""
    count = 0
    for number in places:
        count = 0 if number < 0 else count + 1
        if count <= most:
            yield number


def _write(folder: Path, prefix: str, ending: str, content: bytes) -> str:
    """Writes a file of the bundle under a name that follows from its content; its digest."""
    digest = hashlib.sha256(content).hexdigest()[:DIGEST]
    file = folder / f"{prefix}_{digest}{ending}"
    file.write_bytes(gzip.compress(MAGIC + content, 6, mtime=0))
    return digest
