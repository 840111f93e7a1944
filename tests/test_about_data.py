"""A knowledge base about pandas and SQL: nothing that kbtools makes of it speaks of another field.

`tests/data_base` was verified with pandas 1.5.3 and 2.2.3, and bisected over the releases of
sqlparse; its evidence is that of those runs.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from bases import Base

ROOT = Path(__file__).parent / "data_base"
OTHER_FIELD = re.compile(r"torch|triton|cuda|nvidia|collect_env|\bgpus?\b", re.IGNORECASE)
TEXTS = {".html", ".md", ".txt", ".xml", ".svg", ".json"}
FORMATS = ("api/v1/schemas/",)
"""Descriptions of kbtools' own formats, which name all that a row can hold."""


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Base:
    """A copy of the knowledge base, with its site."""
    pytest.importorskip("material", reason="the site cannot be built without mkdocs-material")
    root = tmp_path_factory.mktemp("data") / "base"
    shutil.copytree(ROOT, root)
    base = Base(root, root)
    built = base.kbtools("build", "--url", "https://example.org/data/", timeout=300)
    assert built.code == 0, built.err
    return base


def test_pages(data: Base) -> None:
    """No page, feed or index that a reader can open names a package or device of another field."""
    site = data.root / "site"
    mentions = [
        (file.relative_to(site).as_posix(), match[0])
        for file in site.rglob("*")
        if file.suffix in TEXTS and not file.relative_to(site).as_posix().startswith(FORMATS)
        for match in OTHER_FIELD.finditer(_words(file.read_text("utf-8")))
    ]
    assert mentions == []
    assert "pandas 2.2.3" in (site / "DATA0001" / "index.html").read_text("utf-8")


def _words(text: str) -> str:
    """A text without the keys of JSON, which are part of a format."""
    return re.sub(r'(?:"|&#34;)\w+(?:"|&#34;):', "", text)


def test_board(data: Base) -> None:
    """The board's columns are named by pandas and sqlparse, and differ."""
    text = data.kbtools("matrix").out
    columns = re.findall(r"^- T\d+: (.*)", text, re.MULTILINE)
    assert len(columns) == len(set(columns)) >= 3
    assert any("pandas 1.5.3" in column for column in columns)
    assert any("sqlparse 0.5.3" in column for column in columns)
    assert not OTHER_FIELD.search(text)


def test_verify_and_diagnose(data: Base) -> None:
    """What needs no package is verified on any interpreter; the answers name the base's words."""
    verified = data.kbtools("verify", "DATA0002", "--all")
    assert verified.code == 0, verified.out + verified.err
    assert not OTHER_FIELD.search(verified.out)
    log = data.root / "a.log"
    log.write_text("pandas==2.2.3\nAttributeError: 'DataFrame' object has no attribute 'append'\n")
    answer = data.kbtools("diagnose", str(log))
    assert "DATA0001" in answer.out
    assert "affected" in answer.out
    assert not OTHER_FIELD.search(answer.out)
