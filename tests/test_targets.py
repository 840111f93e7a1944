"""The architectures that a snippet compiled for, which is not to say that it ran on them."""

from __future__ import annotations

import shutil

import pytest
from bases import Base, fence

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
