"""axe-core on every kind of page: light and dark, desk and phone, in both languages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from chromium import Reader, Served

axe = pytest.importorskip("axe_playwright_python", reason="axe-playwright-python is not installed")
SCRIPT = next(Path(axe.__file__).parent.rglob("axe.min.js")).read_text("utf-8")

KINDS = (
    *("", "articles/", "KB0002/", "KB0006/", "KB0002/logs/", "status/", "paste/", "guide/"),
    *("search/?q=entry", "issues/fla-org/flash-linear-attention/97/", "by/stage/ptxas/", "format/"),
    *("reference/rules/", "reference/cli/", "reference/api/", "reference/api/articles.model/"),
    "contributing/",
)


EVERYTHING = "axe.run({resultTypes: ['violations']})"
COLOURS = """axe.run({resultTypes: ['violations'],
  runOnly: {type: 'rule', values: ['color-contrast', 'link-in-text-block']}})"""
"""The rules that the colours of a page can break."""


@pytest.mark.parametrize("language", ["", "zh/"])
@pytest.mark.parametrize("width", [1280, 390])
def test_no_violation(chromium: Any, our_site: Served, width: int, language: str) -> None:
    """axe-core finds nothing in light or dark colours, and no page is wider than its window."""
    window = {"width": width, "height": 844}
    reader = Reader(chromium, our_site, viewport=window, color_scheme="light")
    violations = []
    for kind in KINDS:
        if language and kind.startswith("reference/"):
            continue  # these pages are in English only
        page = reader.open(language + kind)
        page.wait_for_load_state("networkidle")
        page.evaluate(SCRIPT)
        page.add_style_tag(
            content="* { transition: none !important }"
        )  # a colour in transition breaks rules
        broken = page.evaluate(EVERYTHING)["violations"]
        page.emulate_media(color_scheme="dark")
        broken += page.evaluate(COLOURS)["violations"]
        page.emulate_media(color_scheme="light")
        violations += [
            f"{language}{kind}: {rule['id']} at {rule['nodes'][0]['target']}: "
            + rule["nodes"][0]["failureSummary"]
            for rule in broken
        ]
        if page.evaluate("document.documentElement.scrollWidth") > width:
            violations.append(f"{language}{kind}: wider than {width} pixels")
    reader.context.close()
    assert violations == []
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
