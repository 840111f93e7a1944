"""The status board, and the toolchains that are one article's own."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from bases import Base, fence

from kbtools import config
from kbtools.checks.base import load_base
from kbtools.site.model import MANY, SiteModel, build_model, cells_of
from kbtools.site.pages.board import board_page
from kbtools.site.pages.frame import Frame
from kbtools.site.pages.strip import strip

FAILS = fence("python repro id=r1", 'raise RuntimeError("the failure")')


def recorded(base: Base, articles: int) -> SiteModel:
    """So many articles on this toolchain, the first on another one as well."""
    for number in range(1, articles + 1):
        base.article(FAILS, number=number, matter='affected: [{python: ">=3.9"}]')
    assert base.verify("--record").code == 0
    file = base.root / "evidence" / "KB0001.jsonl"
    [row] = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
    row["toolchain"]["python"] = "3.9.0"
    with file.open("a", encoding="utf-8") as rows:
        rows.write(json.dumps(row) + "\n")
    return build_model(load_base(config.find(base.root)))


def cells(model: SiteModel, article: str) -> list[str]:
    """What the strip of an article's page has a cell for."""
    view = model.by_id[article]
    frame = Frame(model, "en", f"{article}.md")
    return [mark.label for mark in strip(frame, view, cells_of(view, model.toolchains))]


@pytest.mark.parametrize(("articles", "columns"), [(MANY - 1, 2), (MANY, 1)])
def test_toolchains_of_a_single_article(
    new_base: Callable[..., Base], articles: int, columns: int
) -> None:
    """Among many articles it has no column and no cell in another's strip, but a line below."""
    model = recorded(new_base(), articles)
    assert len(model.toolchains) == 2
    assert len(model.common) == columns
    assert "3.9.0" in cells(model, "KB0001")
    assert ("3.9.0" in cells(model, "KB0002")) is (columns == 2)
    _, page = board_page(Frame(model, "en", "status.md"))
    text = page.decode()
    assert text.count('<th scope="col"') == 1 + columns
    assert text.count("Python 3.9.0") >= 1, "it is listed, whatever the columns"
    assert ("used by a single article" in text) is (columns == 1)
