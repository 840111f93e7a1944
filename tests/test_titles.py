"""Titles that people write about a failure, without a line of an error below them."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from kbtools.matching import Matcher, load

ROOT = Path(__file__).parent.parent
FILE = tomllib.loads(Path(__file__).with_name("titles.toml").read_text("utf-8"))
EXACT = ("unsupported display driver / cuda driver combination", "system error")
"""Parts of titles that have the text which the program prints: these may be sure."""


@pytest.fixture(scope="module")
def matcher() -> Matcher:
    """The matcher of this knowledge base."""
    return Matcher(load(ROOT))


@pytest.mark.parametrize("article", FILE["titles"])
def test_titles_of_failures(matcher: Matcher, article: str) -> None:
    """A title alone names the article, and is no sure answer."""
    wrong = []
    for title in FILE["titles"][article]:
        matches = matcher.diagnose(f"# {title}\n\nIt was well last week.\n").matches
        is_sure = any(match.confident for match in matches)
        is_exact = any(text in title for text in EXACT)
        if not matches or matches[0].id != article or (is_sure and not is_exact):
            wrong.append((title, [match.id for match in matches], is_sure))
    assert wrong == []


@pytest.mark.parametrize("article", FILE["sentences"])
def test_sentences_about_failures(matcher: Matcher, article: str) -> None:
    """A sentence below a title that says nothing names the article, and is no sure answer."""
    wrong = []
    for sentence in FILE["sentences"][article]:
        matches = matcher.diagnose(f"# It does not work\n\n{sentence}\nWhat can I do?\n").matches
        if not matches or matches[0].id != article or any(each.confident for each in matches):
            wrong.append((sentence, [match.id for match in matches]))
    assert wrong == []


def test_titles_of_something_else(matcher: Matcher) -> None:
    """A request, a question, or another failure in neighbouring words is not answered."""
    wrong = [
        (title, [match.id for match in matches])
        for title in FILE["others"]["titles"]
        if (matches := matcher.diagnose(f"# {title}\n\nHi\n").matches)
    ]
    assert wrong == []
