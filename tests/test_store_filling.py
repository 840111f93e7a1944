"""The store of a toolchain is filled once, whole or not at all, and found by every snippet."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
import pytest
from bases import Base, fence
from warm import (
    CACHES,
    COLD,
    FILL,
    MADE,
    WARM,
    NewBase,
    await_that,
    contents,
    fillings,
    stores,
    warm_base,
)

from kbtools.config import Running, StoreSettings
from kbtools.running import Executor, Run
from kbtools.running.store_filling import filling
from kbtools.running.store_keeper import StoreKeeper
from kbtools.running.toolchain_store import StoreError, StoreOrder
from kbtools.running.zygote_process import ZYGOTE


@pytest.mark.parametrize("isolation", ["fork", "spawn"])
def test_what_snippets_find(filled: Base, isolation: str) -> None:
    """Files, no locks and no links, at their places and with the store's variables; made once."""
    filled.article(
        fence("python control id=c1", WARM),
        fence("python control id=c2", f"{WARM}\nassert os.environ['WARM'] == 'yes'"),
        fence("bash control id=c3", 'test "$WARM" = yes -a -L "$TMPDIR/shared/header" # colorsys'),
    )
    done = filled.verify("--all", "--isolation", isolation, "-j", "2")
    assert set(done.verdicts.values()) == {"holds"}, done.out
    assert fillings(filled) == 1 and done.err == ""
    assert set(contents(filled)) == {
        "contents.json",
        "tmp/shared/header",
        "cache/inductor/1/answer",
    }


def test_the_zygote_has_its_variables(new_base: NewBase) -> None:
    """A preloaded module sees the store's variables: it may read them while it is imported."""
    base = warm_base(new_base, more="\n")
    text = (base.root / "kbtools.toml").read_text("utf-8")
    (base.root / "kbtools.toml").write_text(
        text + "\n[run.preload]\nwarmth = 'colorsys'\n", "utf-8"
    )
    module = "import os\n\nWARMTH = os.environ['WARM']\n"
    (base.root / "warmth.py").write_text(module, "utf-8")
    base.article(fence("python control id=c1", WARM))
    assert base.verify().verdicts == {"KB0001/c1": "holds"}
    store = json.dumps([str(stores(base)[0]), {"WARM": "yes"}])
    zygote = subprocess.run(
        [sys.executable, str(ZYGOTE), "warmth", str(base.temporary), "[]", store],
        env={**os.environ, "PYTHONPATH": str(base.root)},
        input=b"",
        capture_output=True,
        check=True,
    )
    assert b'"store": true' in zygote.stdout and b'"refused": {}' in zygote.stdout


def test_without_the_sandbox(new_base: NewBase) -> None:
    """With --no-sandbox a store is neither filled nor used: a snippet could write to it."""
    base = warm_base(new_base)
    base.article(fence("python control id=c1", COLD))
    assert base.verify("--no-sandbox").verdicts == {"KB0001/c1": "holds"}
    assert fillings(base) == 0
    base.article(fence("python control id=c1", WARM))
    assert base.verify().verdicts == {"KB0001/c1": "holds"}
    base.article(fence("python control id=c1", COLD))
    assert base.verify("--no-sandbox").verdicts == {"KB0001/c1": "holds"}


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        ("raise OSError(28, 'No space left on device')", "No space left on device"),
        ("import os\nos._exit(3)", "fill.py: exit code 3"),
        ("import os\nos.kill(os.getpid(), 9)", "fill.py: exit code -9"),
        ("import time\ntime.sleep(60)", "fill.py: time limit of 1 s"),
    ],
)
def test_a_program_that_fails(new_base: NewBase, program: str, reason: str) -> None:
    """Nothing of it stays; a warning says why, and snippets run without."""
    base = warm_base(new_base, FILL + program, more="timeout = 1.0\n")
    base.article(fence("python control id=c1", COLD))
    done = base.verify()
    assert done.verdicts == {"KB0001/c1": "holds"} and stores(base) == []
    assert "StoreWarning: run.store: " in done.err and reason in done.err


def test_what_it_needs_is_not_there(new_base: NewBase) -> None:
    """Without a program of `needs` the store is neither filled nor used."""
    base = warm_base(new_base, more="needs = ['no-such-program']\n")
    base.article(fence("python control id=c1", COLD))
    done = base.verify()
    assert done.verdicts == {"KB0001/c1": "holds"} and fillings(base) == 0
    assert "no-such-program is not on the PATH" in done.err


def test_too_few_to_be_worth_it(new_base: NewBase) -> None:
    """Below `at-least` an empty store is not filled, and a full one is used."""
    base = warm_base(new_base)
    file = base.root / "kbtools.toml"
    file.write_text(file.read_text("utf-8").replace("at-least = 1", "at-least = 2"), "utf-8")
    base.article(fence("python control id=c1", COLD), fence("python control id=c2", "assert 1"))
    assert base.verify("--all").verdicts["KB0001/c1"] == "holds" and fillings(base) == 0
    base.article(*(fence(f"python control id=c{i}", WARM) for i in (1, 2)))
    assert set(base.verify("--all").verdicts.values()) == {"holds"} and fillings(base) == 1
    base.article(fence("python control id=c1", WARM))
    assert base.verify("--all").verdicts == {"KB0001/c1": "holds"}


def test_a_run_that_is_killed_while_it_fills(new_base: NewBase) -> None:
    """It leaves no store, and the next run begins anew and removes what was left."""
    base = warm_base(new_base, f"{FILL}\nif not os.path.exists({{log!r}} + '2'): time.sleep(60)")
    base.article(fence("python control id=c1", WARM))
    process = base.start("verify")
    await_that(lambda: any(path.rglob("answer") for path in stores(base)) and fillings(base) == 1)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    [leftover] = stores(base)
    assert leftover.name.startswith(".")
    (base.root / "log2").touch()
    assert base.verify(timeout=90).verdicts == {"KB0001/c1": "holds"}
    [store] = stores(base)
    assert not store.name.startswith(".") and fillings(base) == 2


def test_ctrl_c_while_it_fills(new_base: NewBase) -> None:
    """It ends at once, with the program, and leaves nothing."""
    base = warm_base(new_base, f"{FILL}\ntime.sleep(600)")
    base.article(fence("python control id=c1", WARM))
    process = base.start("verify")
    await_that(lambda: fillings(base) == 1)
    os.kill(process.pid, signal.SIGINT)
    process.communicate(timeout=30)
    assert process.returncode == 130
    assert stores(base) == [] and base.running_after(5) == []


def test_two_runs_at_once(new_base: NewBase) -> None:
    """One of them fills the store, the other waits for it; both use it."""
    base = warm_base(new_base, f"{FILL}\ntime.sleep(1)")
    base.article(fence("python control id=c1", WARM))
    processes = [base.start("verify", "--all") for _ in range(2)]
    outputs = [process.communicate(timeout=60) for process in processes]
    assert [process.returncode for process in processes] == [0, 0], outputs
    assert fillings(base) == 1 and len(stores(base)) == 1


def keeper_of(base: Base, toolchain: str = "one", **variables: str) -> StoreKeeper:
    """Of the base's store, for a toolchain of that name."""
    settings = StoreSettings(program="fill.py", when="", environment={"WARM": "yes"})
    folder = base.root / ".kbtools" / "stores"
    order = StoreOrder(settings, base.root / "fill.py", folder, toolchain, variables=CACHES)
    return StoreKeeper(order, sys.executable, {"PATH": os.environ["PATH"], **variables})


def test_what_its_name_depends_on(new_base: NewBase, tmp_path: Path) -> None:
    """Another toolchain, compiler or program has another store, and the former one is removed."""
    base = warm_base(new_base)
    names = {
        keeper_of(base).name(),
        keeper_of(base, "two").name(),
        keeper_of(base, CXX="clang++").name(),
    }
    compiler = tmp_path / "g++"
    compiler.write_text("#!/bin/sh\n", "utf-8")
    compiler.chmod(0o755)
    names.add(keeper_of(base, PATH=f"{tmp_path}:{os.environ['PATH']}").name())
    first = keeper_of(base).open()
    assert first
    first.close()
    (base.root / "fill.py").write_text((base.root / "fill.py").read_text("utf-8") + "\n", "utf-8")
    names.add(keeper_of(base).name())
    assert len(names) == 5
    second = keeper_of(base).open()
    assert second and second.folder != first.folder and stores(base) == [second.folder]
    third = keeper_of(base, "two").open()
    assert third and second.folder in stores(base), "it is in use"
    second.close()
    third.close()


def test_waiting_for_another_run_can_be_stopped(new_base: NewBase) -> None:
    """Whoever waits while another process fills a store ends when asked to."""
    base = warm_base(new_base)
    waiting = keeper_of(base)
    with filling(base.root / ".kbtools" / "stores", threading.Event()):
        threading.Timer(0.3, waiting.stop).start()
        with pytest.raises(StoreError, match="cancelled"):
            waiting.open()
    assert fillings(base) == 0


def test_only_forks_that_use_it_wait(tmp_path: Path) -> None:
    """While a store is filled, other forks run, and fresh interpreters run without it."""
    fifo, program = tmp_path / "fifo", tmp_path / "fill.py"
    os.mkfifo(fifo)
    filling_program = f"{FILL}\nopen({str(fifo)!r}).read()\n"
    for name, value in (("log", str(tmp_path / "log")), ("made", MADE)):
        filling_program = filling_program.replace(f"{{{name}!r}}", repr(value))
    program.write_text(filling_program)
    settings = StoreSettings(program=str(program), when=".", environment={"WARM": "yes"})
    order = StoreOrder(settings, program, tmp_path / "stores", "a toolchain", variables=CACHES)
    user = Run(source=WARM, language="python", display_path="a.md", stored=True)
    cold = msgspec.structs.replace(user, source=COLD, spawn=True)
    without = "import os, tempfile\nassert os.listdir(tempfile.gettempdir()) == []"
    plain = msgspec.structs.replace(user, source=without, stored=False)
    with (
        ThreadPoolExecutor(1) as thread,
        Executor(sys.executable, Running(variables=CACHES), store=order) as executor,
    ):
        future = thread.submit(executor.run, user)
        assert executor.run(plain).status == "passed"
        assert executor.run(cold).status == "passed"
        assert not future.done(), "the program waits for the line below"
        fifo.write_text("")
        assert future.result().status == "passed", future.result()
        assert executor.run(msgspec.structs.replace(user, spawn=True)).status == "passed"
        assert executor.run(plain).status == "passed"
