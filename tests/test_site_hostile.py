"""Hostile articles and logs: they neither run on a page nor break it."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import quote

import hostile
import pytest
from bases import Base
from chromium import Reader, served
from sites import prepared

from kbtools import config
from kbtools.checks.base import load_base
from kbtools.site.generate import tree
from kbtools.site.model import build_model

pytest.importorskip("material")

ACTIVE = {
    "script",
    "style",
    "iframe",
    "object",
    "embed",
    "svg",
    "img",
    "form",
    "base",
    "meta",
    "link",
}
LONG = 10_000_000


class Parsed(HTMLParser):
    """The tags of a page that can act, and every attribute that can."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.active: list[str] = []
        self.wrongs: list[str] = []
        self.open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Notes what a tag could do."""
        if tag in ACTIVE:
            self.active.append(tag)
        for name, value in attrs:
            plain = re.sub(r"[\s\x00-\x20]", "", value or "").lower()
            acts = re.match(r"(javascript|vbscript|data):", plain) and plain != "data:,"
            if name.startswith("on") or acts:
                self.wrongs.append(f"<{tag} {name}={value!r}>")


def pages(base: Base) -> Iterator[tuple[str, str]]:
    """The HTML of every page that is about articles."""
    site = base.root / "site"
    for file in sorted(site.rglob("*.html")):
        yield file.relative_to(site).as_posix(), file.read_text("utf-8")


@pytest.fixture(scope="module")
def mean(new_base: Callable[..., Base]) -> Base:
    """A hostile knowledge base, recorded and built."""
    base = prepared(hostile.base_of(new_base()))
    assert base.verify("--record").code == 0
    hostile.poison(base.root / "evidence" / "KB0001.jsonl")
    run = base.kbtools("build", timeout=300)
    assert run.code == 0, run.err
    return base


@pytest.fixture(scope="module")
def kind(new_base: Callable[..., Base]) -> Base:
    """One of the same build with nothing hostile in it."""
    base = prepared(new_base())
    base.article("```python repro id=r1\nraise RuntimeError('the failure')\n```\n")
    file = base.root / "kbtools.toml"
    file.write_text(file.read_text("utf-8").replace("[run]", 'languages = ["en", "zh"]\n[run]'))
    run = base.kbtools("build", timeout=300)
    assert run.code == 0, run.err
    return base


def test_nothing_acts(mean: Base, kind: Base) -> None:
    """A page has the active tags that it has for any article, in number too, and no handler."""
    ours = {name: Parsed(text) for name, text in pages(kind)}
    compared = 0
    for name, text in pages(mean):
        parsed = Parsed(text)
        assert parsed.wrongs == [], name
        same = ours.get(name)
        if same and not name.startswith("guide"):
            compared += 1
            extra = [
                tag
                for tag in set(parsed.active)
                if parsed.active.count(tag) > same.active.count(tag)
            ]
            assert set(extra) <= {"form"}, name  # a board with a run has an example, say
    assert compared > 8


def test_the_text_is_shown(mean: Base) -> None:
    """What was written is shown: a reader sees the tags, and nothing is left out in silence."""
    text = dict(pages(mean))["KB0001/index.html"]
    assert text.count("&lt;script&gt;window.rang=1") > 5
    assert "<b>" not in text.replace("<b></b>", "")
    log = dict(pages(mean))["KB0001/logs/index.html"]
    assert "&lt;img src=x onerror" in log
    assert not re.search("[\x00-\x08\x0e-\x1f\u2028\u202e]", text + log)


def test_the_frame_is_complete(mean: Base) -> None:
    """Header, contents, evidence and footer of a hostile article stand where they always do."""
    text = dict(pages(mean))["KB0001/index.html"]
    for once in ('class="kb-header"', 'class="kb-fold"', 'id="evidence"', 'class="kb-footer"'):
        assert text.count(once) == 1, once
    assert text.index('id="fix"') < text.index('id="evidence"') < text.index("kb-footer")
    assert text.count("<h1") == 1


def test_ten_megabytes(new_base: Callable[..., Base]) -> None:
    """Ten megabytes in every field and log make pages of an ordinary size, in seconds."""
    base = hostile.base_of(new_base(), long=LONG)
    assert base.verify("--record").code == 0
    hostile.poison(base.root / "evidence" / "KB0001.jsonl", LONG)
    loaded = load_base(config.find(base.root))
    assert not loaded.problems
    began = time.process_time()
    files = dict(tree(build_model(loaded)))
    assert time.process_time() - began < 30
    large = {name: len(content) for name, content in files.items() if len(content) > 1_000_000}
    assert large == {}
    assert "too long to be shown" in files["KB0001.md"].decode()
    assert Path("KB0001/logs.md").as_posix() in files


def test_in_a_browser(mean: Base, chromium: Any, tmp_path: Path) -> None:
    """Nothing of it runs in a browser, in no language: on its pages, as a result, in the boxes."""
    with served(mean.root / "site", tmp_path / "www") as site:
        reader = Reader(chromium, site)
        page = reader.page
        for path in ("", "KB0001/", "KB0001/logs/", "articles/", "status/", "zh/KB0001/", "paste/"):
            reader.open(path).wait_for_load_state("networkidle")
            assert page.evaluate("window.rang") is None, path
            assert page.locator(".kb-footer").is_visible(), path
        page.fill("#kb-log", "RuntimeError: the failure\n" + "\n".join(hostile.TAGS))
        page.click(".kb-go")
        page.wait_for_selector(".kb-match")
        page.fill("#kb-log", "".join(f"RuntimeError: the failure {tag}\n" for tag in hostile.TAGS))
        page.click(".kb-go")
        page.wait_for_function(
            "document.querySelector('.kb-match-line')?.textContent.includes('<')"
        )
        reader.open("search/?q=" + quote("script window.rang <img src=x onerror=window.rang=1>"))
        page.wait_for_selector(".kb-results li a")
        reader.open("KB0001/?q=<script>#<script>")
        assert page.evaluate("window.rang") is None
        reader.context.close()
    assert reader.wrongs == []


def test_ten_megabytes_in_a_box(reader: Reader) -> None:
    """A log of ten megabytes is answered or refused in a few seconds, and the page stays alive."""
    page = reader.open("paste/")
    page.wait_for_load_state("networkidle")
    page.evaluate(
        """tail => {
          const data = new DataTransfer();
          data.setData('text/plain', '<b>x = &lt; 1.2.3 error: \\n'.repeat(400000) + tail);
          document.getElementById('kb-log').dispatchEvent(
            new ClipboardEvent('paste', { clipboardData: data, bubbles: true, cancelable: true }));
        }""",
        "error: operand #1 does not dominate this use",
    )
    page.wait_for_selector(".kb-match a, .kb-none", timeout=60_000)
    assert page.evaluate("1 + 1") == 2
