"""A knowledge base that has what MkDocs needs."""

from __future__ import annotations

from pathlib import Path

from bases import Base

from kbtools.articles import scaffold

TEMPLATES = Path(scaffold.__file__).parent / "templates"


def prepared(base: Base) -> Base:
    """A base with the `mkdocs.yml` that `kbtools init` writes."""
    text = (TEMPLATES / "mkdocs.yml").read_text("utf-8")
    (base.root / "mkdocs.yml").write_text(text.replace("${name}", "a test"), "utf-8")
    return base
