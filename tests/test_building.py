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
from shop import Shop, source_archive


@pytest.fixture
def shop(new_base: Callable[..., Base]) -> Shop:
    """A knowledge base that declares nothing yet, and a wheel `tiny` of two versions."""
    shop = Shop(new_base())
    shop.wheel("tiny", "1.0")
    shop.wheel("tiny", "2.0")
    return shop


def test_sync(shop: Shop) -> None:
    """An environment holds what was declared and nothing else; a second sync does nothing."""
    shop.declare("one", "tiny==1.0")
    assert shop.states() == {"one": "not synced"}
    synced = shop.run("sync", "one")
    assert synced.code == 0, synced.err
    assert shop.packages() == {"tiny": "1.0"}
    assert shop.states() == {"one": "ready"}
    assert "with uv " in synced.out
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
    synced = shop.run("sync", "one", **shop.offline)
    assert synced.code == 0, synced.err
    assert shop.packages() == {"tiny": "1.0", "needs": "1.0"}


def test_variables_of_the_installation(shop: Shop) -> None:
    """They are set while `packages` are built, and the wheel so built is not in uv's cache."""
    shop.wheel("part")
    wheel = shop.wheels / "part-1.0-py3-none-any.whl"
    wheel = wheel.rename(shop.base.root / wheel.name)
    backend = f"""
        import os, shutil

        def build_wheel(folder, config_settings=None, metadata_directory=None):
            if os.environ.get("WITHOUT_KERNELS") != "TRUE":
                raise SystemExit("its kernels cannot be built here")
            shutil.copy({str(wheel)!r}, folder)
            return {wheel.name!r}
    """
    project = '[build-system]\nrequires = []\nbuild-backend = "b"\nbackend-path = ["."]\n'
    files = {"pyproject.toml": project, "b.py": textwrap.dedent(backend)}
    source_archive(shop.wheels / "part-1.0.tar.gz", files)
    shop.declare("one", "part", before=["tiny==1.0"], environment={"WITHOUT_KERNELS": "TRUE"})
    shop.declare("two", "part")
    synced = shop.run("sync", "one", **shop.offline)
    assert synced.code == 0, synced.err
    assert shop.packages() == {"tiny": "1.0", "part": "1.0"}
    refused = shop.run("sync", "two", **shop.offline)
    assert refused.code != 0
    assert "Failed to build `part==1.0`" in refused.err
    shop.declare("three", "tiny", before=["part"], environment={"WITHOUT_KERNELS": "TRUE"})
    assert shop.run("sync", "three", **shop.offline).code != 0


def test_path(shop: Shop) -> None:
    """`path` prints the interpreter, which `--toolchain` finds under the name, too."""
    shop.declare("one", "tiny==1.0")
    refused = shop.run("path", "one")
    assert refused.code == 2
    assert "kbtools toolchain sync one" in refused.err
    shop.run("sync", "one")
    python = shop.run("path", "one").out.strip()
    assert python == str(shop.home / "one" / "bin" / "python")
    described = shop.base.kbtools("env", "--toolchain", "one", "--json", **shop.variables)
    assert json.loads(described.out)["packages"] == {"tiny": "1.0"}


def test_programs_of_packages(shop: Shop) -> None:
    """A folder of programs in `path` is on the PATH of snippets; it is called by its own name."""
    program = b'#!/bin/sh\necho "$0 says release 12.3, V12.3.45"\n'
    shop.wheel("tools", nvcc=program)
    shop.declare("one", "tools", path=["tools"], links={"tools/nvcc": "nvcc.bin"})
    assert shop.run("sync", "one").code == 0
    described = shop.base.kbtools("env", "--toolchain", "one", "--json", **shop.variables)
    assert json.loads(described.out)["cuda"] == "12.3.45"
    synced = subprocess.run(
        [shop.home / "one/bin/nvcc"], capture_output=True, text=True, check=True
    )
    assert "/site-packages/tools/nvcc says" in synced.stdout


@pytest.mark.parametrize("setting", ["PIP_FIND_LINKS", "PIP_CONFIG_FILE"])
def test_uv_looks_where_pip_looks(shop: Shop, setting: str) -> None:
    """Folders of packages that pip is configured with, by a variable or in its file, are uv's."""
    shop.declare("one", "tiny==1.0", options=["--no-index"])
    file = shop.base.root / "pip.conf"
    file.write_text(f"[global]\nfind-links = {shop.wheels}\n")
    values = {"PIP_FIND_LINKS": str(shop.wheels), "PIP_CONFIG_FILE": str(file)}
    synced = shop.run("sync", "one", **{setting: values[setting]})
    assert synced.code == 0, synced.err
    assert shop.packages() == {"tiny": "1.0"}


def test_files_are_shared(shop: Shop) -> None:
    """A wheel that two environments have is on the disk once."""
    shop.wheel("lib", "1.0", data=os.urandom(1 << 20))
    shop.declare("one", "lib==1.0")
    shop.declare("two", "lib==1.0", "tiny==1.0")
    synced = shop.run("sync", "--all")
    assert synced.code == 0, synced.err
    files = [
        next(shop.home.glob(f"{name}/lib/*/site-packages/lib/data.bin")) for name in ("one", "two")
    ]
    assert files[0].samefile(files[1])
    records = {row["name"]: row["built"] for row in json.loads(shop.run("list", "--json").out)}
    assert records["two"]["shared"] >= 1 << 20
    assert records["two"]["size"] > records["two"]["shared"]


def test_prune(shop: Shop) -> None:
    """`prune NAME` removes one; alone it removes what is not declared any more, and only that."""
    shop.home = shop.base.root / ".kbtools" / "toolchains"
    shop.declare("one", "tiny==1.0")
    shop.declare("two", "tiny==1.0")
    shop.declare("three", "tiny==1.0")
    own_folder = {"KBTOOLS_TOOLCHAINS": ""}
    assert shop.run("sync", "--all", **own_folder).code == 0
    assert shop.run("prune", "three", **own_folder).out.startswith("removed three: ")
    shop.forget()
    shop.declare("two", "tiny==1.0")
    (shop.home / ".builds/two/env-left").mkdir()
    shared = shop.run("prune")
    assert "one: not declared here, left alone" in shared.out
    assert shop.builds("two") != ["env-left"]
    synced = shop.run("prune", **own_folder)
    assert "removed one: " in synced.out
    assert [p.name for p in shop.home.glob("[!.]*")] == ["two"]
    assert (len(shop.builds("one")), len(shop.builds("two"))) == (0, 1)
    assert shop.run("prune", "nonesuch", **own_folder).code == 2


def test_list(shop: Shop) -> None:
    """`list` shows name, state, size, purpose and a sum; a declared interpreter is not built."""
    shop.declare("one", "tiny==1.0", purpose="the first", size_gb=0.01)
    shop.declare("mine", python=sys.executable, options=[])
    assert shop.run("sync", "one").code == 0
    lines = shop.run("list").out.splitlines()
    assert lines[0].split()[:2] == ["one", "ready"]
    assert lines[0].endswith("the first")
    assert lines[1].split() == ["mine", "own"]
    assert lines[2:] == ["2 toolchains, about 0.01 GB together; 1 ready here"]
    assert shop.run("sync", "mine").code == 2


def test_nothing_of_the_machine_gets_in(shop: Shop) -> None:
    """Variables that send packages elsewhere, and a Python path, do not reach the installer."""
    shop.declare("one", "tiny==1.0")
    elsewhere = str(shop.base.root / "elsewhere")
    variables = dict.fromkeys(("UV_TARGET", "UV_PREFIX", "VIRTUAL_ENV"), elsewhere)
    synced = shop.run("sync", "one", **variables)
    assert synced.code == 0, synced.err
    assert shop.packages() == {"tiny": "1.0"}
    assert not Path(elsewhere).exists()
