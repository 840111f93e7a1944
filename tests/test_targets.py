"""The architectures that a snippet compiled for, which is not to say that it ran on them."""

from __future__ import annotations

import datetime
import shutil

import msgspec
import pytest
from bases import Base, fence

from kbtools import config
from kbtools.articles.model import Article
from kbtools.checks.base import load_base
from kbtools.evidence.rows import Row
from kbtools.outcome import Outcome
from kbtools.site.model import build_model
from kbtools.site.pages.article import evidence
from kbtools.site.pages.frame import Frame
from kbtools.toolchains.model import Gpu, Toolchain

TELLS = """
    import os

    with open(os.environ["KBTOOLS_TARGETS"], "a") as file:
        file.write("sm_120\\nsm_100\\nsm_100\\n")
    """


def test_what_was_compiled_for_is_evidence(base: Base) -> None:
    """The architectures that a snippet compiled for are in its row, the page and the matrix."""
    base.article(fence("python fix id=f1", TELLS))
    assert base.verify("--record").code == 0
    [row] = base.rows()
    assert row["outcome"]["targets"] == ["sm_100", "sm_120"]
    page = base.kbtools("explain", "KB0001").out
    assert "; compiled for sm_100, sm_120" in page
    assert '"sm_100"' in base.kbtools("matrix", "--json").out


def test_a_snippet_that_compiles_nothing(base: Base) -> None:
    """A snippet that compiled for no architecture has none in its evidence."""
    base.article(fence("python fix id=f1", "assert True"))
    assert base.verify("--record").code == 0
    [row] = base.rows()
    assert "targets" not in row["outcome"]
    assert "compiled for" not in base.kbtools("explain", "KB0001").out


@pytest.mark.skipif(not shutil.which("nvcc"), reason="needs nvcc")
def test_nvcc_flags_name_the_target(base: Base) -> None:
    """A program that is only compiled has the architectures that its flags name."""
    flags = "NVCC_APPEND_FLAGS='-gencode arch=compute_90a,code=sm_90a'"
    code = "__global__ void kernel() {}"
    base.article(fence(f'cuda fix id=f1 requires=nvcc env="{flags}"', code))
    assert base.verify("--record").code == 0
    assert base.rows()[0]["outcome"]["targets"] == ["sm_90a"]


WITH_GPU = Toolchain(python="3.11.7", packages={"triton": "3.6.0"}, gpus=(Gpu("H200", "9.0"),))
WHEN = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)


def row(article: Article, snippet: str, *targets: str) -> Row:
    """A run of a snippet on a machine with a GPU, which had something compiled for `targets`."""
    [code] = [s.digest for s in article.snippets if s.id == snippet]
    outcome = Outcome("passed", exit=0, targets=targets)
    return Row(2, snippet, code, WITH_GPU, outcome, WHEN, "0.1.0")


def table(base: Base, *runs: tuple[str, ...]) -> str:
    """The table of evidence on the page of the first article, after runs with a GPU near."""
    [article] = load_base(config.find(base.root)).articles
    rows = [row(article, *run) for run in runs]
    (base.root / "evidence").mkdir(exist_ok=True)
    file = base.root / "evidence" / "KB0001.jsonl"
    file.write_bytes(msgspec.json.Encoder().encode_lines(rows))
    model = build_model(load_base(config.find(base.root)))
    return evidence(Frame(model, "en", "KB0001.md"), model.views[0])


def test_a_gpu_that_ran_nothing(base: Base) -> None:
    """The page names the target of a run that only compiled, and no GPU that was merely there."""
    base.article(
        fence("python fix id=f1", "x = 1"), fence("python fix id=f2 requires=gpu", "x = 2")
    )
    with (base.root / "kbtools.toml").open("a", encoding="utf-8") as file:
        file.write('\n[toolchain]\nheadline = ["triton", "gpus"]\n')
    page = table(base, ("f1", "sm_120"))
    assert "no GPU used" in page
    assert "compiled for sm_120" in page
    assert "H200" not in page
    page = table(base, ("f1", "sm_120"), ("f2",))
    assert "H200" in page
    assert "f1: compiled for sm_120, no GPU used" in page
    assert "f2:" not in page
