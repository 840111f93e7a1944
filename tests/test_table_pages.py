"""The pages of tables: a page for each, in each language, and one of answers."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest
from test_fits import DRIVER, ENGINES, release

from kbtools import config
from kbtools.checks.base import load_base
from kbtools.site.model import SiteModel, build_model
from kbtools.site.pages.tables import drivers_of, shown_fact, table_pages
from kbtools.tables import store
from kbtools.tables.model import Origin, Statement

SETTINGS = """[knowledge-base]
name = "a test"
prefix = "KB"
languages = ["en", "zh"]

[toolchain.gpus]
Volta = "7.0"
Blackwell = "12.0"
"""
TABLES = """
default = ["engine"]
notes = ["Other indexes have no row."]

[columns]
wheelset = ["wheelset"]

[distributions.engine]
title = "The Engine"

[distributions.empty]

[programs.kernels]
script = "kernels.py"

[reported.drivers]
source = "https://example.org"
read = "2026-01-31"
statements = []
"""


@pytest.fixture
def model(tmp_path: Path) -> SiteModel:
    """A base with three tables that have rows."""
    (tmp_path / "kb").mkdir()
    (tmp_path / "kbtools.toml").write_text(SETTINGS)
    (tmp_path / "tables.toml").write_text(TABLES)
    settings = config.find(tmp_path)
    windows = release("engine", "3.0", "wheelset==9; sys_platform == 'linux'", platform="win-amd64")
    rows = (
        *ENGINES,
        release(
            "engine",
            "0.9",
            "wheelset==8; python_version < '3.13'",
            tags=("cp312-cp312", "cp313-cp313"),
        ),
    )
    store.write(settings, "engine", [*rows, windows])
    store.write(settings, "drivers", [DRIVER])
    run = Statement(
        about={"sm": "==7.0", "engine": "==2.0"},
        source=Origin("kernels.py"),
        date=DRIVER.date,
        basis="measured",
        works=False,
        note="<script>",
    )
    store.write(settings, "kernels", [run])
    return build_model(load_base(settings))


def cells(page: bytes) -> list[list[str]]:
    """The texts of a page's rows."""
    rows = re.findall(r"<tr>(.*?)</tr>", page.decode())
    return [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row) for row in rows]


def test_pages(model: SiteModel) -> None:
    """A page for each table that was read, in each language."""
    pages = dict(table_pages(model, "en"))
    assert set(pages) == {
        *("tables.md", "fits.md"),
        *(f"tables/{name}.md" for name in ("engine", "drivers", "kernels")),
    }
    assert {f"zh/{path}" for path in pages} == set(dict(table_pages(model, "zh")))
    head, newest, *_ = cells(pages["tables/engine.md"])
    assert head[0] == "Release"
    assert newest[:2] == ["3.0", "linux-x86_64"]
    assert "sm_75 sm_120" in newest
    assert "engine-3.0.whl" in newest[-1]
    columns = {
        row[0]: dict(zip(head, row, strict=True)) for row in cells(pages["tables/engine.md"])
    }
    assert columns["0.9"]["wheelset"] == "8"
    assert columns["3.0"]["wheelset"] == ""  # on Windows its marker does not hold


def test_statements(model: SiteModel) -> None:
    """What a run showed and what a document says, with the place; nothing is HTML."""
    pages = dict(table_pages(model, "en"))
    run = pages["tables/kernels.md"].decode()
    assert cells(run.encode())[1][:4] == ["2.0", "7.0", "fails", "&lt;script&gt;"]
    assert 'href="https://example.org">reported</a>' in pages["tables/drivers.md"].decode()


def test_answers(model: SiteModel) -> None:
    """For each driver that statements name: GPU by Python, the newest release that fits."""
    assert drivers_of(store.read(model.config)) == ("580",)
    page = dict(table_pages(model, "en"))["fits.md"]
    head, volta, blackwell = cells(page)
    column = head.index("Python 3.12")
    # 2.0 has code for it, and the run says that it does not work
    assert volta[column] == "1.0"
    assert blackwell[column] == "3.0"


def test_a_base_without_tables(tmp_path: Path) -> None:
    """It has no such page."""
    (tmp_path / "kb").mkdir()
    (tmp_path / "kbtools.toml").write_text(SETTINGS)
    model = build_model(load_base(config.find(tmp_path)))
    assert list(table_pages(model, "en")) == []


def test_names_that_came_and_went(tmp_path: Path) -> None:
    """Of an interface with many names a row shows what its release changed, on its platform."""
    (tmp_path / "kb").mkdir()
    (tmp_path / "kbtools.toml").write_text(SETTINGS)
    (tmp_path / "tables.toml").write_text(
        "[distributions.engine.facts]\n"
        "names = { member = 'engine.py', pattern = 'x', names = true }\n"
        "cuda = { member = 'engine.py', pattern = 'x' }\n"
    )
    settings = config.find(tmp_path)
    of_releases = {"1.0": ("load", "store"), "2.0": ("load", "gather", "sort")}
    rows = [
        msgspec.structs.replace(release("engine", version), facts={"names": names, "cuda": ("13",)})
        for version, names in of_releases.items()
    ]
    elsewhere = msgspec.structs.replace(rows[0], platform="win-amd64")
    store.write(settings, "engine", (*rows, elsewhere))
    base = store.read(settings)
    shown = {
        (row.version, row.platform): shown_fact(base, "engine", row, "names")
        for row in base.releases["engine"]
    }
    assert shown == {
        ("1.0", "linux-x86_64"): "2",
        ("2.0", "linux-x86_64"): "+gather +sort −store",
        ("1.0", "win-amd64"): "2",
    }
    assert shown_fact(base, "engine", rows[1], "cuda") == "13"
