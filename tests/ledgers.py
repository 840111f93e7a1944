"""A knowledge base of one notice, for the tests of notices."""

from __future__ import annotations

import datetime
from pathlib import Path

from click.testing import CliRunner, Result
from examples import lay_out

from kbtools.checks.base import load_base
from kbtools.cli import main
from kbtools.config import Config, find
from kbtools.evidence import store
from kbtools.evidence.rows import SCHEMA, Row
from kbtools.outcome import Outcome
from kbtools.site.model import SiteModel, build_model
from kbtools.toolchains.model import Toolchain

SIGNATURE = """signatures:
  - literal: "gradients are wrong here"
"""
ARTICLE = """---
id: KB0001
title: "error: gradients are wrong here"
summary: "Upgrade."
components: [triton]
stage: runtime
severity: crash
affected:
  - {triton: "<3.0"}
signatures:
  - literal: "gradients are wrong here"
    near: 'never there'
---

## Symptom

```python repro id=r1
raise SystemExit("gradients are wrong here")
```

## Fix

```python fix id=f1
pass
```
"""
REPRO = """
```python repro id=r1
raise SystemExit("gradients are wrong here")
```
"""
LOG = "triton==3.5.0\nRuntimeError: gradients are wrong here\n"


def ledger(root: Path) -> Config:
    """A base of one notice, which has a signature."""
    settings = lay_out("sound-notice", root)
    file = settings.notices / "KBN0001-wrong-gradients.md"
    file.write_text(file.read_text("utf-8").replace("basis:", f"{SIGNATURE}basis:"), "utf-8")
    toml = root / "kbtools.toml"
    more = (
        '\n[toolchain.gpus]\nH100 = "9.0"\n[toolchain.families]\nproject = ["triton", "tritium"]\n'
    )
    toml.write_text(toml.read_text("utf-8") + more, "utf-8")
    return find(root)


def add_article(config: Config) -> None:
    """Adds an article with the same signature."""
    (config.articles / "KB0001-wrong.md").write_text(ARTICLE, "utf-8")


def model_of(config: Config) -> SiteModel:
    """The site's model of a base."""
    return build_model(load_base(config))


def invoke(config: Config, *arguments: str, stdin: str = "") -> Result:
    """Runs a command in the base."""
    return CliRunner().invoke(main, ["-C", str(config.root), *arguments], input=stdin)


def open_window(config: Config) -> None:
    """Takes the end of the notice's window away."""
    file = config.notices / "KBN0001-wrong-gradients.md"
    text = file.read_text("utf-8").replace(">=3.4,<3.6", ">=3.4")
    kept = [line for line in text.split("\n") if "triton<3.6" not in line]
    file.write_text("\n".join(kept), "utf-8")


def record(config: Config, version: str) -> None:
    """Records that the notice's repro passed with a version of triton."""
    [notice] = load_base(config).notices
    row = Row(
        schema=SCHEMA,
        snippet="r1",
        code=notice.snippets[0].digest,
        toolchain=Toolchain(python="3.11.7", packages={"triton": version}),
        outcome=Outcome("passed", exit=0),
        when=datetime.datetime(2026, 1, 31, tzinfo=datetime.UTC),
        kbtools="0",
    )
    store.record(config.evidence, notice.id, row, config)
