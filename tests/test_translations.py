"""Whether a translation still says what its original says, and what follows where it does not."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from bases import Base
from examples import PROBLEMS, lay_out

from kbtools import config
from kbtools.articles import parsing
from kbtools.articles.parsing import Page
from kbtools.articles.translations import edition
from kbtools.checks.base import load_base
from kbtools.cli import main
from kbtools.site import build

ARTICLE = """\
---
id: KB0001
title: It fails
summary: Upgrade.
severity: crash
---

## Symptom

It fails
at once.

```python repro id=r1
raise SystemExit("it fails")
```

```text
it fails
```
"""


def page(text: str) -> Page:
    """That text as the file of an article."""
    return parsing.parse_page(text, "kb/KB0001-it-fails.md", config.find(PROBLEMS))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("It fails\nat once.", "It\nfails at\nonce."),
        ("severity: crash", "severity: hang"),
        ('SystemExit("it fails")', 'SystemExit("it fails here")'),
        ("repro id=r1", "repro id=r1 timeout=5"),
        ("\n", "\r\n"),
    ],
    ids=["wrapped", "another claim", "another code", "another key", "from Windows"],
)
def test_the_same_words(old: str, new: str) -> None:
    """What is no prose, or no part of its meaning, makes no other edition."""
    assert old in ARTICLE
    assert edition(page(ARTICLE.replace(old, new))) == edition(page(ARTICLE))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("title: It", "title: That"),
        ("Upgrade", "Downgrade"),
        ("at once", "later"),
        ("text\nit", "text\nthat"),
    ],
    ids=["title", "summary", "prose", "shown output"],
)
def test_edition_of_changed_words(old: str, new: str) -> None:
    """Whatever a translator would have to translate anew makes another edition."""
    assert old in ARTICLE
    assert edition(page(ARTICLE.replace(old, new))) != edition(page(ARTICLE))


@pytest.mark.parametrize(
    ("example", "notice"), [("sound-translation", False), ("sound-translation-behind", True)]
)
def test_a_notice_for_readers(example: str, notice: bool, tmp_path: Path) -> None:
    """The page of a translation that is behind says so, and links the original; no other does."""
    lay_out(example, tmp_path)
    build.generate(load_base(config.find(tmp_path)), main)
    text = (tmp_path / "build/pages/zh/KB0001.md").read_text("utf-8")
    assert ("原文在翻译之后有改动" in text) is notice
    assert ('href="../../KB0001/" hreflang="en" lang="en">English</a>' in text) is notice
    assert "changed after" not in (tmp_path / "build/pages/KB0001.md").read_text("utf-8")


def test_a_notice_where_the_change_is_reviewed(tmp_path: Path) -> None:
    """On GitHub it is a notice at the translation's line, and check still succeeds."""
    lay_out("sound-translation-behind", tmp_path)
    result = Base(tmp_path, tmp_path).kbtools("check", "--github")
    assert result.code == 0
    assert "::notice file=kb/KB0001-it-fails.zh.md,line=5," in result.out


def test_a_translation_leads_to_translations() -> None:
    """A page in Chinese links the Chinese page of an article that has one."""
    pages = {file.name: file for file in (Path(__file__).parent.parent / "kb").rglob("*.md")}
    strays = [
        f"{name}: {link}"
        for name, file in pages.items()
        if name.endswith(".zh.md")
        for link in re.findall(r"\]\((?:[^)\s#]*/)?([^)\s#/]+\.md)[)#]", file.read_text("utf-8"))
        if f"{link.removesuffix('.md')}.zh.md" in pages
    ]
    assert not strays, strays
