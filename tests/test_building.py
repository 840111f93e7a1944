"""`kbtools toolchain`: what it builds, shares, lists and removes. Needs no network."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest
from bases import Base
from shop import BOTH, NEEDS_UV, Shop, source_archive


@pytest.fixture
def shop(new_base: Callable[..., Base]) -> Shop:
    """A knowledge base that declares nothing yet, and a wheel `tiny` of two versions."""
    found = Shop(new_base())
    found.wheel("tiny", "1.0")
    found.wheel("tiny", "2.0")
    return found


@BOTH
def test_sync(shop: Shop, installer: str) -> None:
    """An environment holds what was declared and nothing else; a second sync does nothing."""
    shop.declare("one", "tiny==1.0")
    assert shop.states() == {"one": "not synced"}
    done = shop.run("sync", "one", "--installer", installer)
    assert done.code == 0, done.err
    assert shop.holds() == {"tiny": "1.0"}
    assert shop.states() == {"one": "ready"}
    assert f"with {installer} " in done.out
    again = shop.run("sync", "--all")
    assert (again.code, again.err) == (0, "")
    assert "there already" in again.out
    assert len(shop.builds()) == 1


def test_steps(shop: Shop) -> None:
    """What is declared to come before is there when the rest is built, and bounds hold."""
    shop.wheel("needs")
    wheel = (shop.wheels / "needs-1.0-py3-none-any.whl").rename(
        shop.base.root / "needs-1.0-py3-none-any.whl"
    )
    backend = f"""
        import shutil, tiny

        def build_wheel(folder, config_settings=None, metadata_directory=None):
            shutil.copy({str(wheel)!r}, folder)
            return {wheel.name!r}
    """
    project = '[build-system]\nrequires = []\nbuild-backend = "b"\nbackend-path = ["."]\n'
    files = {"pyproject.toml": project, "b.py": textwrap.dedent(backend)}
    source_archive(shop.wheels / "needs-1.0.tar.gz", files)
    options = ["--no-index", f"--find-links={shop.wheels}", "--no-build-isolation"]
    shop.declare("one", "needs", before=["tiny"], constraints=["tiny<2"], options=options)
    done = shop.run("sync", "one", "--installer", "pip", **shop.offline)
    assert done.code == 0, done.err
    assert shop.holds() == {"tiny": "1.0", "needs": "1.0"}


def test_path(shop: Shop) -> None:
    """`path` prints the interpreter, which `--toolchain` finds under the name, too."""
    shop.declare("one", "tiny==1.0")
    refused = shop.run("path", "one")
    assert refused.code == 2
    assert "kbtools toolchain sync one" in refused.err
    shop.run("sync", "one")
    python = shop.run("path", "one").out.strip()
    assert python == str(shop.home / "one" / "bin" / "python")
    shown = shop.base.kbtools("env", "--toolchain", "one", "--json", **shop.variables)
    assert json.loads(shown.out)["packages"] == {"tiny": "1.0"}


def test_programs_of_packages(shop: Shop) -> None:
    """A folder of programs in `path` is on the PATH of snippets; it is called by its own name."""
    program = b'#!/bin/sh\necho "$0 says release 12.3, V12.3.45"\n'
    shop.wheel("tools", nvcc=program)
    shop.declare("one", "tools", path=["tools"], links={"tools/nvcc": "nvcc.bin"})
    assert shop.run("sync", "one").code == 0
    shown = shop.base.kbtools("env", "--toolchain", "one", "--json", **shop.variables)
    assert json.loads(shown.out)["cuda"] == "12.3.45"
    done = subprocess.run([shop.home / "one/bin/nvcc"], capture_output=True, text=True, check=True)
    assert "/site-packages/tools/nvcc says" in done.stdout


@NEEDS_UV
def test_what_uv_cannot_pip_may(shop: Shop) -> None:
    """Where uv finds no package pip is tried, and this is said."""
    shop.declare("one", "tiny==1.0", options=["--no-index"])
    done = shop.run("sync", "one", PIP_FIND_LINKS=str(shop.wheels))
    assert done.code == 0, done.err
    assert "Trying pip" in done.err
    assert "with pip" in done.out
    assert shop.holds() == {"tiny": "1.0"}


def test_files_are_shared(shop: Shop) -> None:
    """A large file that two environments have is on the disk once; what is alike in size is not."""
    same, other = os.urandom(1 << 20), os.urandom(1 << 20)
    shop.wheel("lib", "1.0", same=same, other=os.urandom(1 << 20))
    shop.wheel("lib", "2.0", same=same, other=other)
    shop.declare("one", "lib==1.0")
    shop.declare("two", "lib==2.0")
    done = shop.run("sync", "--all", "--installer", "pip")
    assert done.code == 0, done.err
    files = {
        (name, stem): next(shop.home.glob(f"{name}/lib/*/site-packages/lib/{stem}.bin"))
        for name in ("one", "two")
        for stem in ("same", "other")
    }
    assert files["one", "same"].samefile(files["two", "same"])
    assert not files["one", "other"].samefile(files["two", "other"])
    assert files["two", "other"].read_bytes() == other
    rows = {row["name"]: row["built"] for row in json.loads(shop.run("list", "--json").out)}
    assert (rows["one"]["shared"], rows["two"]["shared"]) == (0, 1 << 20)


def test_prune(shop: Shop) -> None:
    """`prune NAME` removes one; alone it removes what is not declared any more, and only that."""
    shop.home = shop.base.root / ".kbtools" / "toolchains"
    shop.declare("one", "tiny==1.0")
    shop.declare("two", "tiny==1.0")
    shop.declare("three", "tiny==1.0")
    mine = {"KBTOOLS_TOOLCHAINS": ""}
    assert shop.run("sync", "--all", **mine).code == 0
    assert shop.run("prune", "three", **mine).out.startswith("removed three: ")
    shop.forget()
    shop.declare("two", "tiny==1.0")
    (shop.home / ".builds/two/env-left").mkdir()
    shared = shop.run("prune")
    assert "one: not declared here, left alone" in shared.out
    assert shop.builds("two") != ["env-left"]
    done = shop.run("prune", **mine)
    assert "removed one: " in done.out
    assert [p.name for p in shop.home.glob("[!.]*")] == ["two"]
    assert (len(shop.builds("one")), len(shop.builds("two"))) == (0, 1)
    assert shop.run("prune", "nonesuch", **mine).code == 2


def test_list(shop: Shop) -> None:
    """`list` shows name, state, size and purpose; an interpreter of one's own is not built."""
    shop.declare("one", "tiny==1.0", purpose="the first", size_gb=0.01)
    shop.declare("mine", python=sys.executable, options=[])
    assert shop.run("sync", "one").code == 0
    lines = shop.run("list").out.splitlines()
    assert lines[0].split()[:2] == ["one", "ready"]
    assert lines[0].endswith("the first")
    assert lines[1].split() == ["mine", "own"]
    assert shop.run("sync", "mine").code == 2


def test_nothing_of_the_machine_gets_in(shop: Shop) -> None:
    """Variables that send packages elsewhere, and a Python path, do not reach the installer."""
    shop.declare("one", "tiny==1.0")
    elsewhere = str(shop.base.root / "elsewhere")
    lost = dict.fromkeys(("PIP_TARGET", "PIP_PREFIX", "VIRTUAL_ENV"), elsewhere)
    done = shop.run("sync", "one", "--installer", "pip", **lost)
    assert done.code == 0, done.err
    assert shop.holds() == {"tiny": "1.0"}
    assert not Path(elsewhere).exists()
