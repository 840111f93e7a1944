"""The signatures on shelves: a browser fetches a few of them, and misses no literal."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import msgspec
import pytest

from kbtools.articles.model import Signature
from kbtools.matching import Index, IndexEntry, load
from kbtools.site.data import shelves

pytest.importorskip("py_mini_racer", reason="mini-racer is not installed")

from v8 import Browser

ROOT = Path(__file__).parent.parent


LITERAL = "the {:x} was not expected {:x} times here"


@cache
def grown() -> tuple[Index, Browser]:
    """The index of this knowledge base with 5,000 more articles, and the page that has it."""
    index = load(ROOT)
    invented = tuple(
        IndexEntry(
            id=f"KB{number:04}",
            title="",
            summary="",
            severity="blocks",
            signatures=(Signature(LITERAL.format(number * 7919, number)),),
        )
        for number in range(2_000, 7_000)
    )
    larger = msgspec.structs.replace(index, articles=(*index.articles, *invented))
    return larger, Browser(larger)


def test_an_error_line_leads_to_its_article() -> None:
    """Of each article of this base the literals are found, whole and with a line end in them."""
    index, browser = grown()
    articles = [entries for _, entries in shelves.shelves_of(index)]
    everywhere = {entry.id for entry in index.articles if _is_in_head(entry)}
    missing = []
    for entry in index.articles[:100]:
        for signature in entry.signatures:
            middle = len(signature.literal) // 2
            wrapped = f"{signature.literal[:middle]}\n{signature.literal[middle:]}"
            for text in (f"Error: {signature.literal}: at 0x7f", wrapped):
                needed = browser.shelves(text)
                if entry.id not in everywhere and not any(entry in articles[n] for n in needed):
                    missing.append((entry.id, text))
    assert not missing


def _is_in_head(entry: IndexEntry) -> bool:
    return any(len(signature.literal) < shelves.GRAM for signature in entry.signatures)


def test_a_line_needs_few_shelves() -> None:
    """With 5,000 more articles, an error line fetches a few shelves of a hundred."""
    index, browser = grown()
    assert len(shelves.shelves_of(index)) > 100
    line = "RuntimeError: CUDA error: an illegal memory access was encountered at step 12,480"
    assert len(browser.shelves(line)) <= 4
    assert browser.shelves("") == []


def test_the_head_grows_by_a_number_an_article() -> None:
    """What is fetched for any text has a number for each literal, and none of their texts."""
    index, _ = grown()
    head = dict(shelves.files(index))[f"{shelves.FOLDER}/head.json"]
    least = dict(shelves.files(load(ROOT)))[f"{shelves.FOLDER}/head.json"]
    assert len(head) - len(least) < 6 * 5_000
    assert b"was not expected" not in head


def test_a_short_literal_is_in_the_head() -> None:
    """A literal that is too short to be told by its characters is at hand for any text."""
    entry = IndexEntry("KB0001", "", "", "blocks", (Signature("SIGBUS"),))
    index = msgspec.structs.replace(load(ROOT), articles=(entry,))
    assert Browser(index).diagnose("Error: SIGBUS\n")["matches"][0]["id"] == "KB0001"


def test_a_cut_line_is_matched_with_all_articles() -> None:
    """Of a line that pytest cut, the beginning of a literal is left: all articles are asked."""
    _, browser = grown()
    beginning = LITERAL.format(2_500 * 7919, 2_500)[:20]
    answer = browser.diagnose(f"FAILED test_step.py::test_step - Error: {beginning}...\n")
    assert [match["id"] for match in answer["matches"]] == ["KB2500"]
