"""What a receipt may be: the same in the prose, in a notice, and in a reported bound."""

from __future__ import annotations

import re

import pytest

from kbtools.articles.receipt_grammar import FIELD, Kind, brackets, kind_of, split, url
from kbtools.articles.receipts import receipts_in

HOST = "https://github.com/owner/repo"
OUTSIDE = {
    "owner/repo#12": (Kind.THREAD, f"{HOST}/issues/12"),
    "owner/repo@1a2b3c4": (Kind.THREAD, f"{HOST}/commit/1a2b3c4"),
    "owner/repo@v1.0": (Kind.SOURCE, f"{HOST}/tree/v1.0"),
    "owner/repo@v1.0 a/b.py": (Kind.SOURCE, f"{HOST}/blob/v1.0/a/b.py"),
    "owner/repo@v1.0 a/b.py:12": (Kind.SOURCE, f"{HOST}/blob/v1.0/a/b.py#L12"),
    "owner/repo@v1.0 a/b.py:12-14": (Kind.SOURCE, f"{HOST}/blob/v1.0/a/b.py#L12-L14"),
    "https://docs.example.org/a/b.html#c": (Kind.PAGE, "https://docs.example.org/a/b.html#c"),
}
BROKEN = ("owner/repo#0", "owner/repo@v1.0 a/b.py:x", "http://example.org", "owner/repo @v1")


@pytest.mark.parametrize("text", OUTSIDE)
def test_one_grammar(text: str) -> None:
    """A receipt that the front matter takes stands in the text, too, and leads to the same."""
    kind, address = OUTSIDE[text]
    assert (kind_of(text), url(text)) == (kind, address)
    assert re.search(FIELD, text)
    [receipt] = receipts_in(f"It is so [{text}].")
    assert (receipt.kind, receipt.text) == (kind, text)


@pytest.mark.parametrize("text", BROKEN)
def test_what_is_none(text: str) -> None:
    """A text that is meant as a receipt and is not well formed is one nowhere."""
    assert kind_of(text) is Kind.MALFORMED
    assert url(text) == ""
    assert not re.search(FIELD, text)


def test_several() -> None:
    """Several in the front matter are several in the text, each in its own brackets."""
    field = ", ".join(OUTSIDE)
    assert re.search(FIELD, field)
    assert split(field) == tuple(OUTSIDE)
    assert [receipt.text for receipt in receipts_in(brackets(field))] == list(OUTSIDE)
    assert not re.search(FIELD, "r1"), "a snippet is no report"
