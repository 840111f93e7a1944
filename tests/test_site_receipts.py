"""Receipts on the site: marks in the text, the share on lists, what programs read."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from bases import Base, fence
from sites import prepared

from kbtools import config
from kbtools.checks.base import load_base
from kbtools.cli import main
from kbtools.site import build

FAILS = fence("python repro id=r1", 'raise RuntimeError("the failure")')
TABLE = """| since | what |
| --- | --- |
| 2.4 | fails [r1] |
| 2.5 | works [a/b#7] |
| 2.6 | works |
"""
"""Three claims, two of which have a receipt."""
PROSE = {
    "It fails [r1].": (
        '<p>It fails\u2060<sup class="kb-receipts" data-pagefind-ignore>'
        '<a class="kb-receipt kb-receipt--snippet" href="../KB0001/logs/#r1"'
        ' title="the runs of this snippet" aria-label="r1: the runs of this snippet">r1</a>'
        "</sup>.</p>"
    ),
    "Two [KB0002/r1] [o/p#12].": (
        'href="../KB0002/#r1" title="the runs of this snippet"'
        ' aria-label="KB0002/r1: the runs of this snippet">KB0002/r1</a>'
        ' <a class="kb-receipt kb-receipt--thread" href="https://github.com/o/p/issues/12"'
    ),
    "In source\n[o/p@v1 a/__init__.py:7] it is.": (
        'In source\u2060<sup class="kb-receipts" data-pagefind-ignore>'
        '<a class="kb-receipt kb-receipt--source" '
        'href="https://github.com/o/p/blob/v1/a/__init__.py#L7"'
        ' title="source: o/p v1, a/__init__.py:7" aria-label="src: source: o/p v1, a/__init__.py:7"'
        ">src</a></sup> it is."
    ),
    "It may be [inferred]. [r404] is none, nor `[r1]`, nor [a [r1] b](https://x.org).": (
        '<span class="kb-receipt kb-receipt--inferred" title="This sentence is an inference.">'
        "inferred</span></sup>. [r404] is none, nor <code>[r1]</code>, nor "
        '<a href="https://x.org">a [r1] b</a>.'
    ),
}
"""Markdown of an author → what is on the page."""


@pytest.fixture(scope="module")
def pages(new_base: Callable[..., Base]) -> Path:
    """The folder of pages of two articles, of which the first has runs."""
    base = prepared(new_base())
    base.article(FAILS, *(f"{text}\n" for text in PROSE), TABLE, number=1)
    assert base.verify("--record", "KB0001").code == 0
    base.article(FAILS, number=2)
    build.generate(load_base(config.find(base.root)), main)
    return base.root / "build" / "pages"


@pytest.mark.parametrize("text", PROSE)
def test_mark(pages: Path, text: str) -> None:
    """A receipt is a mark at its word that leads to runs, a thread or a line; others are text."""
    assert PROSE[text] in (pages / "KB0001.md").read_text("utf-8")


def test_share(pages: Path) -> None:
    """The list of articles, the status board and `llms.txt` say how many claims are sourced."""
    for name in ("articles.md", "status.md"):
        assert "2 of 3 claims in the text (66 %) have a receipt" in (pages / name).read_text()
    assert "2 of 3 claims sourced" in (pages / "articles.md").read_text("utf-8")


def test_texts_for_programs(pages: Path) -> None:
    """`llms.txt`, an article as Markdown and its JSON carry receipts and where each leads."""
    files = pages.parent / "files"
    assert "2 of 3 claims with a receipt" in (files / "llms.txt").read_text("utf-8")
    text = (files / "KB0001.md").read_text("utf-8")
    assert "It fails [r1]." in text
    assert "## Receipts\n\n- [r1]: the runs of KB0001/r1\n" in text
    assert "- [o/p#12]: https://github.com/o/p/issues/12\n" in text
    assert "- [inferred]: an inference\n" in text
    assert "## Receipts" not in (files / "KB0002.md").read_text("utf-8")
    document = json.loads((files / "api/v1/KB0001.json").read_bytes())
    assert [claim["receipts"] for claim in document["claims"]] == [
        [{"kind": "snippet", "text": "KB0001/r1", "url": "KB0001/logs/#r1"}],
        [{"kind": "thread", "text": "a/b#7", "url": "https://github.com/a/b/issues/7"}],
        [],
    ]
    index = json.loads((files / "api/v1/index.json").read_bytes())
    assert [(a["claims"], a["sourced"]) for a in index["articles"]] == [(3, 2), (0, 0)]
