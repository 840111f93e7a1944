"""The first plain site."""

from __future__ import annotations

from pathlib import Path

import pytest
from bases import Base, fence

from kbtools import checks, config
from kbtools.site.generate import generate

pytest.importorskip("mkdocs")

MKDOCS = """\
site_name: a test
docs_dir: build/pages
site_dir: site
plugins: []
markdown_extensions: [tables, pymdownx.highlight, pymdownx.superfences]
"""


def test_a_page_shows_what_was_seen(base: Base) -> None:
    """The built page has the title, the state, the snippets with verdicts, and the evidence."""
    base.article(
        fence("python repro id=r1", 'raise RuntimeError("the failure")'),
        fence("python fix id=f1", "assert True"),
    )
    (base.root / "mkdocs.yml").write_text(MKDOCS, "utf-8")
    assert base.verify("--record").code == 0
    done = base.kbtools("build")
    assert done.code == 0, done.err
    page = (base.root / "site" / "KB0001" / "index.html").read_text("utf-8")
    for text in ("KB0001: article 1", "State: reproduced", "r1, repro: reproduced", "f1 (fix)"):
        assert text in page
    assert "KB0001" in (base.root / "site" / "index.html").read_text("utf-8")


def test_only_what_changed_is_written(base: Base, tmp_path: Path) -> None:
    """A second generation writes nothing, an edited article its pages, a deleted one goes."""
    base.article(fence("python repro id=r1", "assert False"), number=1)
    second = base.article(fence("python repro id=r1", "assert False"), number=2)

    def written() -> list[str]:
        loaded = checks.load(config.find(base.root))
        return sorted(file.name for file in generate(loaded, tmp_path))

    assert written() == ["KB0001.md", "KB0002.md", "index.md"]
    assert written() == []
    second.write_text(second.read_text("utf-8").replace("## Fix\n", "## Fix\n\nMore.\n"), "utf-8")
    assert written() == ["KB0002.md"]
    second.unlink()
    assert written() == ["index.md"]
    assert not (tmp_path / "KB0002.md").exists()


def test_a_title_is_text(base: Base, tmp_path: Path) -> None:
    """HTML and Markdown in a title are shown in the index, not obeyed."""
    file = base.article(fence("python repro id=r1", "assert False"))
    hostile = "<script>alert(1)</script> [a](b) | c"
    file.write_text(file.read_text("utf-8").replace('"article 1"', f'"{hostile}"'), "utf-8")
    generate(checks.load(config.find(base.root)), tmp_path)
    index = (tmp_path / "index.md").read_text("utf-8")
    assert "<script>" not in index
    assert "\\[a\\]\\(b\\) \\| c" in index


def test_without_mkdocs_yml_it_says_so(base: Base) -> None:
    """A site that cannot be built is one message and exit code 2."""
    base.article(fence("python repro id=r1", "assert False"))
    done = base.kbtools("build")
    assert done.code == 2
    assert "mkdocs build failed" in done.err
    assert "Traceback" not in done.err
