"""`kbtools matrix`: measured, reported, or blank."""

from __future__ import annotations

import json

from bases import Base, fence

FAILS = fence("python repro id=r1", 'raise RuntimeError("the failure")')


def marks(base: Base) -> dict[str, list[str]]:
    """Article → the marks of its cells, one for each toolchain."""
    board = json.loads(base.kbtools("matrix", "--json").out)
    return {
        row["id"]: [cell["mark"] for cell in row["cells"].values()] for row in board["articles"]
    }


def test_a_measured_cell_is_marked(base: Base) -> None:
    """A repro that was seen to fail gives ✗, one that was seen to pass gives ✓."""
    base.article(FAILS, number=1)
    base.article(
        fence("python repro id=r1", "assert True"), number=2, matter="affected: [{python: '<3'}]"
    )
    assert base.verify("--record").code == 0
    assert marks(base) == {"KB0001": ["✗"], "KB0002": ["✓"]}


def test_of_one_article(base: Base) -> None:
    """An article that is named has a board of its own, without the toolchains of others."""
    base.article(FAILS, number=1)
    base.article(FAILS, number=2, literal="another failure")
    assert base.kbtools("matrix", "kb1").out.count("| KB0001 |") == 1
    assert "KB0002" not in base.kbtools("matrix", "kb1").out
    assert base.kbtools("matrix", "KB0009").code == 2


def test_without_its_row_a_cell_is_not_guessed(base: Base) -> None:
    """Without its row a cell says `r` where the article claims to fail, and nothing elsewhere."""
    base.article(FAILS, number=1, matter="affected: [{python: '>=3'}]")
    base.article(FAILS, number=2)
    base.article(fence("python fix id=f1", "assert True"), number=3)
    assert base.verify("--record").code == 0
    assert marks(base) == {"KB0001": ["✗"], "KB0002": ["✗"], "KB0003": [""]}
    for number in (1, 2):
        (base.root / "evidence" / f"KB{number:04}.jsonl").unlink()
    assert marks(base) == {"KB0001": ["r"], "KB0002": [""], "KB0003": [""]}


def test_an_edited_snippet_has_no_cell(base: Base) -> None:
    """Evidence of other code than the article has now does not count."""
    base.article(FAILS, number=1)
    base.article(fence("python fix id=f1", "assert True"), number=2)
    assert base.verify("--record").code == 0
    base.article(FAILS.replace("RuntimeError", "ValueError"), number=1)
    assert marks(base) == {"KB0001": [""], "KB0002": [""]}


def test_a_repro_with_a_range_of_its_own_is_no_mark(base: Base) -> None:
    """A repro whose fence overrides `affected` says nothing of the article's range."""
    base.article(
        fence("python repro id=r1", "assert True"),
        fence("python repro id=r2 affected=always", 'raise RuntimeError("the failure")'),
        matter="affected: [{python: '<3'}]",
    )
    assert base.verify("--record").code == 0
    assert marks(base) == {"KB0001": ["✓"]}


def test_a_contradiction_is_shown(base: Base) -> None:
    """A claim that the evidence contradicts is `!`, in the table of Markdown too."""
    base.article(FAILS, number=1)
    assert base.verify("--record").code == 0
    base.article(FAILS, number=1, literal="another failure")
    assert marks(base) == {"KB0001": ["!"]}
    assert "| KB0001 | ! |" in base.kbtools("matrix").out
