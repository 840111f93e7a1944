"""Pagefind's index in smaller pieces: all words remain, and frequent words cost little."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import cbor2
import pytest

from kbtools.site import search_packing
from kbtools.site.search_bundle import SearchIndexError, content_of, meta_of

PROSE, HEADING = -25, -169
"""The weights that Pagefind gives to words of a paragraph and of a title."""


def chunk(words: dict[str, int], places: int) -> bytes:
    """Pagefind's form of words, each on so many pages with so many places and one in the title."""
    random_ = random.Random(0)
    listing = []
    for text, pages in words.items():
        distances = [[random_.randint(1, 90) for _ in range(places)] for _ in range(pages)]
        postings = [[1, [PROSE, *row, HEADING, 3], [-1, 1]] for row in distances]
        listing.append([text, postings, []])
    return cbor2.dumps([listing])


def repacked_words(chunks: Iterable[bytes]) -> dict[str, list[Any]]:
    """Word → its postings, in all chunks after packing."""
    contents = [content for _, _, content in search_packing.repacked(chunks)]
    return {word[0]: word[1] for content in contents for word in cbor2.loads(content)[0]}


def test_every_word_of_every_page_remains() -> None:
    """A rare word keeps all its places, a frequent one its pages and its place in the title."""
    before = chunk({"rare": 3, "the": 5_000}, places=6)
    words = repacked_words([before])
    [[rare, the]] = cbor2.loads(before)
    assert words["rare"] == rare[1]
    assert [posting[0] for posting in words["the"]] == [1] * 5_000
    for short, long in zip(words["the"], the[1], strict=True):
        assert short == [1, [PROSE, long[1][1], HEADING, 3], [-1, 1]]


def test_a_frequent_word_costs_no_more_than_its_pages() -> None:
    """Twenty times the places on each page do not make the packed index larger."""
    few, many = (
        [len(content) for _, _, content in search_packing.repacked([chunk({"the": 5_000}, places)])]
        for places in (3, 60)
    )
    assert sum(many) <= 1.05 * sum(few)


def test_chunks_are_small_and_in_order() -> None:
    """Many words are spread over chunks of a limited size, which name their first and last word."""
    texts = sorted(f"word{number:04}" for number in range(2_000))
    halves = (texts[:1_000], texts[1_000:])
    packed = list(search_packing.repacked(chunk(dict.fromkeys(h, 20), 2) for h in halves))
    assert len(packed) > 10
    assert max(len(content) for *_, content in packed) <= search_packing.CHUNK
    names = [[word[0] for word in cbor2.loads(content)[0]] for *_, content in packed]
    assert [(first, last) for first, last, _ in packed] == [(n[0], n[-1]) for n in names]
    assert [name for of_chunk in names for name in of_chunk] == texts


def write_bundle(folder: Path, content: bytes) -> None:
    """A bundle of one page and one chunk, in the form that Pagefind gives it."""
    (folder / "index").mkdir(parents=True)
    digest = search_packing._write(folder / "index", "en", ".pf_index", content)
    meta = ["1.5.2", [["en_page", 9]], [["a", "z", f"en_{digest}"]], [], [], ["title"]]
    digest = search_packing._write(folder, "pagefind.en", ".pf_meta", cbor2.dumps(meta))
    entry = f'{{"version":"1.5.2","languages":{{"en":{{"hash":"en_{digest}","page_count":1}}}}}}'
    (folder / "pagefind-entry.json").write_text(entry)


def test_a_bundle_is_replaced_whole(tmp_path: Path) -> None:
    """The files that were replaced are gone, and the list of files names the new ones."""
    write_bundle(tmp_path, chunk({f"word{number:04}": 9 for number in range(900)}, 20))
    search_packing.pack(tmp_path)
    [listing] = tmp_path.glob("*.pf_meta")
    names = {f"{name}.pf_index" for _, _, name in meta_of(listing).chunks}
    assert len(names) > 3
    assert {file.name for file in (tmp_path / "index").iterdir()} == names
    assert all(content_of(tmp_path / "index" / name) for name in names)
    assert listing.name.encode()[9:-8] in (tmp_path / "pagefind-entry.json").read_bytes()


def malformed() -> Iterator[bytes]:
    """Chunks that a later Pagefind might write, and one that is no CBOR."""
    yield cbor2.dumps([[["word", {"pages": []}, []]]])
    yield cbor2.dumps([[["word", [], [], "more"]]])
    yield cbor2.dumps({"words": []})
    yield b"\xff\xff"


@pytest.mark.parametrize("content", list(malformed()))
def test_another_form_is_an_error_with_the_next_step(tmp_path: Path, content: bytes) -> None:
    """An index of another form is not guessed at: the error names the release to install."""
    write_bundle(tmp_path, content)
    with pytest.raises(SearchIndexError, match=r"pip install 'pagefind\[extended\]>=1.5,<1.6'"):
        search_packing.pack(tmp_path)
