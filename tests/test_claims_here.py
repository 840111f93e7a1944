"""The claims of this repository's own articles: those that most readers need have no bare one."""

from __future__ import annotations

from pathlib import Path

import pytest

from kbtools import config
from kbtools.articles.claims import Standing, claims
from kbtools.articles.parsing import Page, read_page

SETTINGS = config.find(Path(__file__).parent)
MOST_WANTED = (
    *("KB0022", "KB0053", "KB0029", "KB0054", "KB0069", "KB0038", "KB0040", "KB0007", "KB0008"),
    *("KB0039", "KB0043", "KB0056", "KB0091", "KB0076", "KB0055", "KB0017", "KB0058", "KB0079"),
    *("KB0074", "KB0046", "KB0078", "KB0034", "KB0093", "KB0013", "KB0071", "KB0052"),
)
"""The articles that answer most of the public threads that this project measures itself with."""


def page_of(identifier: str) -> Page:
    """The original of an article."""
    [file] = (f for f in SETTINGS.articles.glob(f"{identifier}-*.md") if f.name.count(".") == 1)
    return read_page(file, SETTINGS)


@pytest.mark.parametrize("identifier", MOST_WANTED)
def test_no_bare_claim(identifier: str) -> None:
    """Behind each claim stands a receipt; if one has none, `kbtools claims ID --bare` shows it."""
    stated = claims(page_of(identifier), SETTINGS)
    bare = [str(claim.place) for claim in stated if claim.standing is Standing.BARE]
    assert bare == []
