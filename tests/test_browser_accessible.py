"""axe-core on every kind of page: light and dark, desk and phone, in both languages."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from chromium import Reader, Served

axe = pytest.importorskip("axe_playwright_python", reason="axe-playwright-python is not installed")
SCRIPT = next(Path(axe.__file__).parent.rglob("axe.min.js")).read_text("utf-8")

KINDS = (
    *("", "articles/", "KB0002/", "KB0002/logs/", "status/", "paste/", "guide/"),
    *("search/?q=entry", "issues/fla-org/flash-linear-attention/97/", "by/stage/ptxas/", "format/"),
    *("reference/rules/", "reference/cli/", "reference/api/", "reference/api/articles.model/"),
    *("contributing/", "KBN0012/", "known/", "known/nccl/", "known/nccl/2.28.3/"),
)

SHORTENED = """for (const list of document.querySelectorAll('ol, ul, tbody, tr'))
  for (const part of [...list.children].slice(30)) part.remove()"""
"""Lists, and tables in both directions, end here: axe-core takes minutes for thousands of rows that
one template writes.
"""
EVERYTHING = "axe.run({resultTypes: ['violations']})"
COLOURS = """axe.run({resultTypes: ['violations'],
  runOnly: {type: 'rule', values: ['color-contrast', 'link-in-text-block']}})"""
"""The rules that the colours of a page can break."""


ENGLISH = tuple(kind for kind in KINDS if kind.startswith("reference/"))
"""These pages are in English only."""
CHINESE = tuple(f"zh/{kind}" for kind in KINDS if kind not in ENGLISH)
DESK, PHONE = 1280, 390
PAIRS = [
    *((DESK, path) for path in KINDS),
    *((PHONE, path) for path in (*CHINESE, *ENGLISH)),
]
"""Each kind at both widths and in both languages, but not each language at each width: where a page
breaks a rule is in its template, in its words, or in the style of its width.
"""


@pytest.fixture(scope="module")
def readers(chromium: Any, our_site: Served) -> Iterator[dict[int, Reader]]:
    """Width of the window → a reader, whose browser keeps scripts and styles from page to page."""
    readers = {
        width: Reader(
            chromium, our_site, viewport={"width": width, "height": 844}, color_scheme="light"
        )
        for width in (DESK, PHONE)
    }
    yield readers
    for reader in readers.values():
        reader.context.close()


def shown(reader: Reader, path: str) -> Any:
    """A page, when all of it is there."""
    page = reader.open(path)
    if "?q=" in path:
        page.wait_for_selector(".kb-results li a")
    reader.settle()
    return page


@pytest.mark.parametrize(("width", "path"), PAIRS)
def test_no_violation(readers: dict[int, Reader], width: int, path: str) -> None:
    """axe-core finds nothing in light or dark colours, and the page is no wider than its window."""
    reader = readers[width]
    reader.wrongs.clear()
    page = shown(reader, path)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.evaluate(SHORTENED)
    page.evaluate(SCRIPT)
    # a colour in transition breaks rules
    page.add_style_tag(content="* { transition: none !important }")
    broken = page.evaluate(EVERYTHING)["violations"]
    page.emulate_media(color_scheme="dark")
    broken += page.evaluate(COLOURS)["violations"]
    page.emulate_media(color_scheme="light")
    violations = [
        f"{rule['id']} at {rule['nodes'][0]['target']}: {rule['nodes'][0]['failureSummary']}"
        for rule in broken
    ]
    assert violations == []
    assert reader.wrongs == []


@pytest.mark.parametrize(
    ("width", "paths"),
    [(DESK, CHINESE), (PHONE, tuple(kind for kind in KINDS if kind not in ENGLISH))],
    ids=["desk", "phone"],
)
def test_no_page_is_wider(readers: dict[int, Reader], width: int, paths: tuple[str, ...]) -> None:
    """The pages that axe-core does not see at this width are no wider than the window, too."""
    reader = readers[width]
    reader.wrongs.clear()
    widths = {}
    for path in paths:
        widths[path] = shown(reader, path).evaluate("document.documentElement.scrollWidth")
    assert {path: wide for path, wide in widths.items() if wide > width} == {}
    assert reader.wrongs == []


def test_the_404_page(chromium: Any, our_site: Served) -> None:
    """The page for a missing address has a search and no violation, and its links are right."""
    reader = Reader(chromium, our_site)
    page = reader.page
    answer = page.goto(f"{reader.url}KB9999/some/where/")
    assert answer.status == 404
    reader.wrongs.clear()  # the console reports that answer, too
    assert page.eval_on_selector("form", "form => form.action") == f"{reader.url}search/"
    page.evaluate(SCRIPT)
    page.add_style_tag(content="* { transition: none !important }")
    assert page.evaluate(EVERYTHING)["violations"] == []
    page.emulate_media(color_scheme="dark")
    assert page.evaluate(COLOURS)["violations"] == []
    page.fill("input", "wy_fast")
    page.keyboard.press("Enter")
    page.wait_for_selector(".kb-results li a")
    reader.context.close()
    assert reader.wrongs == []
