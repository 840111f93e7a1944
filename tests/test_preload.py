"""Modules that a zygote imports once for all snippets, and what is said of one that it cannot."""

from __future__ import annotations

import sys
from collections.abc import Callable

import pytest
from bases import Base, fence

from kbtools.config import Running
from kbtools.running import Executor, Run
from kbtools.running.executor import PreloadWarning


def test_a_fork_has_what_was_preloaded() -> None:
    """A module is imported, and a function called, before the snippet begins."""
    code = "import sys\n\nassert 'colorsys' in sys.modules and 'csv' in sys.modules"
    preload = ("colorsys", "csv:list_dialects")
    with Executor(sys.executable, Running(), preload=preload) as executor:
        outcome = executor.run(Run(source=code, language="python", display_path="kb/a.md"))
    assert outcome.status == "passed", outcome


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("no_such_module", "ModuleNotFoundError: No module named 'no_such_module'"),
        ("json:no_such_function", "AttributeError: module 'json' has no attribute"),
    ],
)
def test_a_module_that_cannot_be_preloaded(name: str, why: str) -> None:
    """It is reported, with the reason; snippets run without it."""
    run = Run(source="pass", language="python", display_path="kb/a.md")
    with (
        Executor(sys.executable, Running(), preload=(name,)) as executor,
        pytest.warns(PreloadWarning, match=f"run.preload: `{name}`: {why}"),
    ):
        assert executor.run(run).status == "passed"


def test_verify_says_so(new_base: Callable[..., Base]) -> None:
    """`verify` writes it to standard error and goes on."""
    base = new_base("[run.preload]\n'packaging:no_such_function' = 'packaging'")
    base.article(fence("python control", "import packaging"))
    done = base.verify()
    assert done.verdicts == {"KB0001/control1": "holds"}
    assert done.err.count("PreloadWarning: run.preload: `packaging:no_such_function`") == 1
