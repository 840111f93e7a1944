"""The index that logs are matched with, as `diagnose` keeps it."""

from __future__ import annotations

from pathlib import Path

import pytest
from bases import Base, fence, rewrite

from kbtools import config
from kbtools.matching.index import of_base


def test_the_index_of_a_changed_article(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A log is matched with the signatures of today, also if only the change time tells of them."""
    base = Base.make(tmp_path / "base", tmp_path)
    for number in (1, 2, 3):
        base.article(fence("python repro", "assert False"), number=number)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    literals = [entry.signatures[0].literal for entry in of_base(config.find(base.root)).articles]
    assert literals == ["the failure"] * 3
    rewrite(base.root / "kb/KB0002-an-article.md", '"the failure"', '"the mistake"')
    literals = [entry.signatures[0].literal for entry in of_base(config.find(base.root)).articles]
    assert literals == ["the failure", "the mistake", "the failure"]
