"""The status board, the strip of an article, and the toolchains that are one article's own."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from bases import Base, fence

from kbtools import config
from kbtools.checks.base import load_base
from kbtools.site.model import MANY, SiteModel, build_model, cells_of
from kbtools.site.pages.article import article_page
from kbtools.site.pages.board import board_page
from kbtools.site.pages.frame import Frame
from kbtools.site.pages.strip import strip

FAILS = fence("python repro id=r1", 'raise RuntimeError("the failure")')


def recorded(base: Base, articles: int) -> SiteModel:
    """So many articles on this toolchain, the first on another one as well."""
    for number in range(1, articles + 1):
        base.article(FAILS, number=number, matter='affected: [{python: ">=3.9,<9"}]')
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


def with_pythons(base: Base, article: str, versions: tuple[str, ...], **changed: object) -> None:
    """Copies the row of an article's evidence, as if it had run on these Pythons, too."""
    file = base.root / "evidence" / f"{article}.jsonl"
    row = json.loads(file.read_text("utf-8").splitlines()[0])
    with file.open("a", encoding="utf-8") as rows:
        for version in versions:
            row["toolchain"] = {**row["toolchain"], "python": version, **changed}
            rows.write(json.dumps(row) + "\n")


def page_of(model: SiteModel, article: str, language: str = "en") -> str:
    """The page of an article up to its text."""
    view, frame = model.by_id[article], Frame(model, language, f"{article}/")
    _, page = article_page(frame, view, cells_of(view, model.toolchains))
    return page.decode().partition("## Symptom")[0]


def test_what_a_version_decides_comes_first(base: Base) -> None:
    """A mistake that fails everywhere has no row of crosses: what was tried is said once."""
    base.article(FAILS, number=1)
    base.article(FAILS, number=2, matter='affected: [{python: ">=3.9,<9"}]')
    base.article(FAILS, number=3, matter='affected: [{python: ">=3.0"}]')
    base.article(FAILS.replace("id=r1", 'id=r1 affected="python>=3.9"'), number=4)
    assert base.verify("--record").code == 0
    base.article(FAILS, number=5)  # never run
    base.article(fence("python repro id=r1", "pass"), number=6)
    assert base.verify("KB0006", "--record").code == 1
    for article in ("KB0001", "KB0003"):
        with_pythons(base, article, ("3.1.0", "3.2.0", "3.0.5"))
    model = build_model(load_base(config.find(base.root)))
    text = board_page(Frame(model, "en", "status/"))[1].decode()
    table, _, rest = text.partition('<h2 id="everywhere">')
    everywhere, _, others = rest.partition('<h2 id="others">')
    assert [number for number in range(1, 7) if f">KB000{number}<" in table] == [2, 6]
    assert table.index(">KB0006<") < table.index(">KB0002<"), "what is contradicted is first"
    assert [number for number in range(1, 7) if f">KB000{number}<" in everywhere] == [1, 3]
    assert everywhere.count("Fails on every version tried: Python 3.0.5 to 3.") == 1
    assert "(4 versions)" in everywhere
    assert "kb-mark--fails" not in everywhere
    assert [number for number in range(1, 7) if f">KB000{number}<" in others] == [4, 5]


@pytest.mark.parametrize(
    ("language", "words"),
    [("en", "Fails on every version tried"), ("zh", "在试过的所有版本上都失败")],
)
def test_cells_that_all_say_the_same(base: Base, language: str, words: str) -> None:
    """From three cells on, one sentence with the range tried stands instead of them."""
    base.article(FAILS)
    assert base.verify("--record").code == 0
    model = build_model(load_base(config.find(base.root)))
    assert "kb-cell--fails" in page_of(model, "KB0001", language)
    with_pythons(base, "KB0001", ("3.1.0", "3.2.0"))
    text = page_of(build_model(load_base(config.find(base.root))), "KB0001", language)
    assert words in text
    assert "kb-cell" not in text


def test_snippets_with_claims_of_their_own(base: Base) -> None:
    """The strip does not say that nothing was run if each snippet names its own versions."""
    base.article(FAILS.replace("id=r1", 'id=r1 affected="python>=3.9"'))
    assert base.verify("--record").code == 0
    text = page_of(build_model(load_base(config.find(base.root))), "KB0001")
    assert "Each snippet names its own versions." in text
    assert "Nothing was run" not in text


def test_a_claim_on_gpus_has_no_cells_without_gpu(base: Base) -> None:
    """Where a part of the claim has no version and nothing is known, the strip has no cell."""
    base.article(FAILS, matter='affected: [{python: ">=3.1", sm: "==9.0"}]')
    base.article(FAILS, number=2)
    assert base.verify("KB0002", "--record").code == 0
    gpu = {"gpus": [{"name": "a GPU", "sm": "9.0"}]}
    with_pythons(base, "KB0002", ("3.1.0",), **gpu)
    assert cells(build_model(load_base(config.find(base.root))), "KB0001") == [
        "python 3.1.0 · sm 9.0"
    ]


def test_a_row_without_cells(new_base: Callable[..., Base]) -> None:
    """An article whose toolchains have no columns shows its versions in its row."""
    base = new_base()
    recorded(base, MANY)
    base.article(FAILS, number=1, matter='affected: [{python: ">=3.9,<3.10"}]')
    file = base.root / "evidence" / "KB0001.jsonl"
    own = file.read_text("utf-8").splitlines()[1]
    file.write_text(own + "\n", "utf-8")  # only on the Python that no other article was run on
    model = build_model(load_base(config.find(base.root)))
    text = board_page(Frame(model, "en", "status/"))[1].decode()
    [row] = [row for row in text.split("<tr>") if ">KB0001<" in row]
    assert 'colspan="1"' in row
    assert "3.9.0 <span" in row
