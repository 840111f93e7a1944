"""Modules that a zygote imports once for all snippets, and what is said of one that it cannot."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
import pytest
from bases import Base, fence

from kbtools.config import Running
from kbtools.running import Executor, Run
from kbtools.running.executor import PreloadWarning
from kbtools.running.zygote_process import ZygoteFailed


def test_a_fork_has_what_was_preloaded() -> None:
    """A module is imported, and a function called, before the snippet begins."""
    code = "import sys\n\nassert 'colorsys' in sys.modules and 'csv' in sys.modules"
    preload = ("colorsys", "csv:list_dialects")
    with Executor(sys.executable, Running(), preload=preload) as executor:
        outcome = executor.run(Run(source=code, language="python", display_path="kb/a.md"))
    assert outcome.status == "passed", outcome


def test_a_module_that_cannot_be_preloaded() -> None:
    """It is reported, with the reason; snippets run without it."""
    run = Run(source="pass", language="python", display_path="kb/a.md")
    with (
        Executor(sys.executable, Running(), preload=("locale:format_string",)) as executor,
        pytest.warns(PreloadWarning, match="run.preload: `locale:format_string`: TypeError"),
    ):
        assert executor.run(run).status == "passed"


@pytest.mark.parametrize("name", ["no_such_module", "json.no_such_module", "json:no_such_function"])
def test_what_a_release_does_not_have(name: str) -> None:
    """A module or a function that is not there is passed over: other releases have it."""
    run = Run(source="pass", language="python", display_path="kb/a.md")
    with (
        Executor(sys.executable, Running(), preload=(name,)) as executor,
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("error", PreloadWarning)
        assert executor.run(run).status == "passed"


def test_verify_says_so(new_base: Callable[..., Base]) -> None:
    """`verify` writes it to standard error and goes on."""
    base = new_base("[run.preload]\n'packaging.version:parse' = 'packaging'")
    base.article(fence("python control", "import packaging"))
    done = base.verify()
    assert done.verdicts == {"KB0001/control1": "holds"}
    assert done.err.count("PreloadWarning: run.preload: `packaging.version:parse`") == 1


def test_a_fresh_interpreter_does_not_wait_for_forks(tmp_path: Path) -> None:
    """A run that is no fork is made while the modules for forks are still being imported."""
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    (tmp_path / "waits.py").write_text(f"open({str(fifo)!r}).read()\n")
    preload = ("waits",)
    running = Running(environment=("PYTHONPATH",))
    fresh = Run(source="pass", language="python", display_path="kb/a.md", spawn=True)
    forked = Run(source="import sys; sys.modules['waits']", language="python", display_path="a.md")
    with (
        pytest.MonkeyPatch.context() as patch,
        ThreadPoolExecutor(1) as thread,
    ):
        patch.setenv("PYTHONPATH", str(tmp_path))
        with Executor(sys.executable, running, preload=preload) as executor:
            future = thread.submit(executor.run, forked)
            assert executor.run(fresh).status == "passed"
            assert not future.done(), "its module waits for the line below"
            fifo.write_text("")
            assert future.result().status == "passed", future.result()


def test_closing_does_not_wait_for_an_import(tmp_path: Path) -> None:
    """A zygote that still imports modules has no snippet to end, and is ended at once."""
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "waits.py").write_text(f"open({str(tmp_path / 'fifo')!r}).read()\n")
    forked = Run(source="pass", language="python", display_path="kb/a.md")
    running = Running(environment=("PYTHONPATH",))
    with pytest.MonkeyPatch.context() as patch, ThreadPoolExecutor(1) as thread:
        patch.setenv("PYTHONPATH", str(tmp_path))
        with Executor(sys.executable, running, preload=("waits",)) as executor:
            future = thread.submit(executor.run, forked)
            executor.run(msgspec.structs.replace(forked, spawn=True))
        outcome = future.result()
    assert (outcome.status, outcome.message) == ("lost", "the zygote died")


def test_what_the_preloading_process_sees(tmp_path: Path) -> None:
    """`preload-variables` are those of the process that imports; a snippet does not see them."""
    (tmp_path / "early.py").write_text("import os\n\nSEEN = os.environ.get('EARLY')\n")
    code = "import os, early\n\nassert early.SEEN == 'yes' and 'EARLY' not in os.environ"
    running = Running(environment=("PYTHONPATH",), preload_variables={"EARLY": "yes"})
    run = Run(source=code, language="python", display_path="kb/a.md")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(tmp_path))
        with Executor(sys.executable, running, preload=("early",)) as executor:
            outcome = executor.run(run)
    assert outcome.status == "passed", outcome.output


def test_a_guard(tmp_path: Path) -> None:
    """What no fork could use is refused, with the name of the guard; what is fine is not."""
    (tmp_path / "opened.py").write_text("def is_open(): return True\ndef is_shut(): return False\n")
    run = Run(source="pass", language="python", display_path="kb/a.md")
    for guard, refused in (
        ("opened:is_open", True),
        ("opened:is_shut", False),
        ("no.such:f", False),
    ):
        running = Running(environment=("PYTHONPATH",), preload_guards=(guard,))
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("PYTHONPATH", str(tmp_path))
            with Executor(sys.executable, running, preload=("opened",)) as executor:
                if refused:
                    with pytest.raises(
                        ZygoteFailed, match=rf"{guard}\(\) is true after the imports"
                    ):
                        executor.run(run)
                else:
                    assert executor.run(run).status == "passed"
