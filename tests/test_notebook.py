"""IPython and Jupyter: the article below a traceback, in a real shell and a real kernel."""

from __future__ import annotations

import queue
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from bases import Base

pytest.importorskip("ipykernel", reason="the test extra brings it")
from jupyter_client.manager import KernelManager

FAILURE = "RuntimeError: the failure of the day"
FAILS = "raise RuntimeError('the failure of the day')"
ARTICLE = "\nkbtools: KB0001: Do it right.\n  kbtools explain KB0001\n"


@pytest.fixture
def base(base: Base) -> Base:
    """A knowledge base with an article about one failure."""
    base.article(literal=FAILURE)
    return base


def variables(base: Base) -> dict[str, str]:
    """An environment without the settings and the history of who runs the tests."""
    folder = base.root / "home"
    folder.mkdir(exist_ok=True)
    return base.environment(
        HOME=str(folder), IPYTHONDIR=str(folder / "ipython"), XDG_CACHE_HOME=str(folder / "cache")
    )


def ipython(base: Base, *cells: str) -> str:
    """What a shell prints to whom these lines are typed: the lines of errors and of output."""
    words = ["-m", "IPython", "--no-banner", "--colors=NoColor", "--simple-prompt", "--quick"]
    process = subprocess.run(
        [sys.executable, *words],
        cwd=base.root,
        env=variables(base),
        input="\n".join(cells) + "\n",
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=120,
        check=False,
    )
    assert process.returncode == 0, process.stdout
    return process.stdout


LOAD = "%load_ext kbtools"


@pytest.mark.parametrize("load", [LOAD, "import kbtools.hook; kbtools.hook.install()"])
def test_a_cell_that_fails(base: Base, load: str) -> None:
    """The traceback is as without the extension; the article stands below it, once."""
    alone = ipython(base, "1 + 1", FAILS)
    printed = ipython(base, load, load, FAILS)
    trace = alone[alone.index("-----") : alone.rindex("In [")]
    assert trace.replace("In[2]", "In[3]") in printed.replace("cell line: 0", "cell line: 1")
    assert printed.count(ARTICLE) == 1
    assert printed.index(FAILURE) < printed.index(ARTICLE)


def test_what_a_cell_calls(base: Base) -> None:
    """Scripts that `%run` runs, awaited code, timed code and threads are followed, too."""
    (base.root / "script.py").write_text(FAILS)
    for cell in (
        "%run script.py",
        f"import asyncio; await asyncio.sleep(0); {FAILS}",
        f"import threading as t; h = t.Thread(target=lambda: exec({FAILS!r})); h.start(); h.join()",
    ):
        assert ipython(base, LOAD, cell).count(ARTICLE) == 1, cell


def test_silence(base: Base) -> None:
    """Other failures, exits and what was shown before bring no article."""
    interrupt = f"raise KeyboardInterrupt({FAILURE!r})"
    cells = ("1 / 0", "1 +", "print('well')", "int('x')", interrupt, "raise SystemExit")
    printed = ipython(base, LOAD, *cells)
    assert "ZeroDivisionError" in printed
    assert "kbtools:" not in printed
    printed = ipython(base, LOAD, FAILS, "print('well')", "1 + 1")
    assert printed.count("kbtools:") == 1


def test_unload(base: Base) -> None:
    """After `%unload_ext` nothing is shown, of threads neither; it can be loaded again."""
    thread = f"import threading as t; h = t.Thread(target=lambda: exec({FAILS!r}))"
    thread += "; h.start(); h.join()"
    printed = ipython(base, LOAD, FAILS, "%unload_ext kbtools", FAILS, thread)
    assert printed.count("kbtools:") == 1
    printed = ipython(base, LOAD, "%unload_ext kbtools", LOAD, FAILS)
    assert printed.count("kbtools:") == 1


def test_another_extension_keeps_its_place(base: Base) -> None:
    """What a program does with errors by `set_custom_exc` is done, and the article is shown."""
    cell = "get_ipython().set_custom_exc((Exception,), lambda *_, **__: print('MINE'))"
    printed = ipython(base, LOAD, cell, FAILS)
    assert printed.index("MINE") < printed.index(ARTICLE)


def test_an_error_of_kbtools_hides_nothing(base: Base) -> None:
    """Without a knowledge base that can be read: the traceback, and one line."""
    (base.root / "kbtools.toml").write_text("[")
    printed = ipython(base, LOAD, FAILS)
    assert FAILURE in printed
    assert printed.count("kbtools: no article was looked for: ") == 1


@pytest.fixture
def kernel(base: Base) -> Iterator[Any]:
    """A client of a kernel, as a notebook is."""
    manager: Any = KernelManager(kernel_name="python3")
    manager.kernel_spec.argv[0] = sys.executable
    manager.start_kernel(cwd=str(base.root), env=variables(base))
    client = manager.client()
    client.start_channels()
    try:
        client.wait_for_ready(timeout=120)
        yield client
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


def outputs(client: Any, cell: str) -> list[tuple[str, str]]:
    """The kind and the text of each output of a cell, in the order in which a notebook has them."""
    request = client.execute(cell)
    parts: list[tuple[str, str]] = []
    while True:
        try:
            message = client.get_iopub_msg(timeout=60)
        except queue.Empty:
            raise AssertionError(f"no answer to: {cell}") from None
        if message["parent_header"].get("msg_id") != request:
            continue
        content = message["content"]
        if message["msg_type"] == "status" and content["execution_state"] == "idle":
            return parts
        if message["msg_type"] == "error":
            parts.append(("error", f"{content['ename']}: {content['evalue']}"))
        if message["msg_type"] == "stream":
            parts.append((content["name"], content["text"]))


def test_a_notebook(kernel: Any) -> None:
    """In the output of a cell the article stands below the traceback; unloaded, it does not."""
    assert outputs(kernel, LOAD) == []
    assert outputs(kernel, "print('well')") == [("stdout", "well\n")]
    assert outputs(kernel, FAILS) == [("error", FAILURE), ("stderr", ARTICLE)]
    assert outputs(kernel, "int('x')")[1:] == []
    assert outputs(kernel, "%unload_ext kbtools") == []
    assert outputs(kernel, FAILS) == [("error", FAILURE)]
