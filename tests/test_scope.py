"""What a sentence speaks of that names no release and no GPU: what was run."""

from __future__ import annotations

import json

from bases import Base, fence

from kbtools import config
from kbtools.checks.base import load_base
from kbtools.evidence.scope import scope_of
from kbtools.evidence.state import observations

GPU = {"name": "NVIDIA H100 80GB HBM3", "sm": "9.0"}


def recorded(base: Base) -> None:
    """An article whose repro ran on three toolchains, and whose GPU snippet ran nowhere."""
    base.article(
        fence("python repro id=r1", 'raise RuntimeError("the failure")'),
        fence("python fix id=f1 requires=gpu", "assert True"),
    )
    assert base.verify("KB0001/r1", "--record").code == 0


def add(base: Base, snippet: str, packages: dict[str, str], **changed: object) -> None:
    """Copies the row of an article's evidence, as if another snippet had run elsewhere."""
    file = base.root / "evidence" / "KB0001.jsonl"
    article = load_base(config.find(base.root)).articles[0]
    [digest] = [s.digest for s in article.snippets if s.id == snippet]
    row = json.loads(file.read_text("utf-8").splitlines()[0])
    row |= {"snippet": snippet, "code": digest}
    row["toolchain"] = {**row["toolchain"], "packages": packages, **changed}
    with file.open("a", encoding="utf-8") as rows:
        rows.write(json.dumps(row) + "\n")


def test_versions_and_gpus(base: Base) -> None:
    """Versions from old to new as numbers; a GPU counts where the snippet used it."""
    recorded(base)
    add(base, "r1", {"torch": "2.9.1+cu130"}, gpus=[{**GPU, "name": "NVIDIA A100"}])
    add(base, "f1", {"torch": "2.11.0", "triton": "3.6.0"}, gpus=[GPU, GPU])
    settings = config.find(base.root)
    [article] = load_base(settings).articles
    copied = [o for o in observations(article, settings) if o.row.toolchain.gpus]
    scope = scope_of(article, copied, ["torch", "triton", "cuda", "gpus"])
    assert scope is not None
    assert scope.versions == {"torch": ("2.9.1", "2.11.0"), "triton": ("3.6.0",)}
    assert scope.gpus == ("NVIDIA H100 80GB HBM3",)
    other = scope_of(article, copied, ["torch"])
    assert other is not None
    assert other.gpus is None


def test_the_document_says_it(base: Base) -> None:
    """`explain` has it in a line; an article that was never run has no such line."""
    recorded(base)
    base.article(fence("python practice id=p1", "pass"), number=2)
    text = base.kbtools("explain", "KB0001").out
    [line] = [line for line in text.splitlines() if line.startswith("- Was run with: Python 3.")]
    assert "; linux-" in line, "this base is not about GPUs"
    assert line.endswith("A sentence that names no release speaks of these.")
    assert "Was run with" not in base.kbtools("explain", "KB0002").out
