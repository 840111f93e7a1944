"""Setting up: uv installs from where pip looks, and CUDA's gigabytes only where they are wanted."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def wheel(folder: Path, name: str, version: str, *requirements: str) -> None:
    """Writes a wheel without modules."""
    folder.mkdir(exist_ok=True)
    lines = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}"]
    lines += [f"Requires-Dist: {requirement}" for requirement in requirements]
    tags = "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    stem = f"{name.replace('-', '_')}-{version}"
    with zipfile.ZipFile(folder / f"{stem}-py3-none-any.whl", "w") as archive:
        for file, text in (("METADATA", "\n".join(lines) + "\n"), ("WHEEL", tags), ("RECORD", "")):
            archive.writestr(f"{stem}.dist-info/{file}", text)


def simple_index(folder: Path, wheels: Path, name: str) -> str:
    """Makes an index that has the wheels of one project; its address."""
    page = folder / name / "index.html"
    page.parent.mkdir(parents=True)
    files = sorted(wheels.glob(f"{name}-*.whl"))
    page.write_text("".join(f'<a href="{file.as_uri()}">{file.name}</a>\n' for file in files))
    return folder.as_uri()


class Machine:
    """A machine whose pip finds the build with CUDA, and an environment to be set up."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.packages, self.empty = folder, folder / "packages", folder / "empty"
        self.environment = folder / "environment"
        wheel(self.packages, "torch", "2.13.0", "nvidia-example")
        wheel(self.packages, "nvidia-example", "1.0")
        venv = [str(Path(sys.executable).with_name("uv")), "venv", "-q", "--python"]
        subprocess.run([*venv, sys.executable, str(self.environment)], check=True)

    def install(self, *words: str, **more: str) -> subprocess.CompletedProcess[str]:
        """Installs torch as `make kb` does."""
        self.empty.mkdir(exist_ok=True)  # an index: these tests download nothing
        pip = {"PIP_FIND_LINKS": str(self.packages), "PIP_INDEX_URL": self.empty.as_uri()}
        variables = {k: v for k, v in os.environ.items() if not k.startswith(("PIP_", "UV_"))}
        variables["UV_CACHE_DIR"] = str(self.folder / "cache")
        variables |= {"PIP_CONFIG_FILE": os.devnull, "PYTHONPATH": str(ROOT), **pip, **more}
        script = [sys.executable, str(ROOT / "fleet" / "install.py")]
        python = str(self.environment / "bin" / "python")
        return subprocess.run(
            [*script, "--python", python, *words, "torch==2.13.0"],
            env=variables,
            capture_output=True,
            text=True,
        )

    @property
    def installed(self) -> set[str]:
        """Names and versions of what is installed."""
        folders = self.environment.glob("lib/python*/site-packages/*.dist-info")
        return {folder.stem.replace("_", "-") for folder in folders}


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """A machine whose pip finds the build with CUDA."""
    return Machine(tmp_path)


def test_what_pip_is_set_to_find(machine: Machine) -> None:
    """A small build that pip would find is taken, and no other index is asked."""
    wheel(machine.packages, "torch", "2.13.0+cpu")
    done = machine.install("--torch", "cpu", TORCH_CPU_INDEX="file:///nowhere")
    assert (done.returncode, done.stdout) == (0, "")
    assert machine.installed == {"torch-2.13.0+cpu"}


def test_the_index_of_small_builds(machine: Machine) -> None:
    """If pip would take the build with CUDA, the index of small builds is asked, too."""
    small = machine.folder / "small"
    wheel(small, "torch", "2.13.0+cpu")
    index = simple_index(machine.folder / "simple", small, "torch")
    done = machine.install("--torch", "cpu", TORCH_CPU_INDEX=index)
    assert (done.returncode, machine.installed) == (0, {"torch-2.13.0+cpu"}), done.stderr


@pytest.mark.parametrize("index", ["file:///nowhere", "empty"])
def test_nothing_large_by_surprise(machine: Machine, index: str) -> None:
    """If only the build with CUDA can be had, nothing is installed, and the choices are named."""
    if index == "empty":
        index = machine.empty.as_uri()
    done = machine.install("--torch", "cpu", TORCH_CPU_INDEX=index)
    assert (done.returncode, machine.installed) == (2, set())
    for choice in (index, "TORCH_CPU_INDEX=ADDRESS", "TORCH=cuda", "TORCH=no", "GB"):
        assert choice in done.stderr


def test_cuda_is_announced(machine: Machine) -> None:
    """Where CUDA is wanted its size is printed, and what takes less."""
    done = machine.install("--torch", "cuda")
    assert done.returncode == 0, done.stderr
    assert machine.installed == {"torch-2.13.0", "nvidia-example-1.0"}
    assert "GB" in done.stdout
    assert "TORCH=cpu" in done.stdout


def test_pip_asks_no_index(machine: Machine) -> None:
    """If pip is set to use no index, none is asked, not even that of small builds."""
    done = machine.install("--torch", "cpu", "no-such-package==1", PIP_NO_INDEX="1")
    assert done.returncode == 1
    assert "no-such-package" in done.stderr
    assert "index" not in done.stderr.replace("no index", "")


def test_it_fails_as_uv_does(machine: Machine) -> None:
    """A package that cannot be had is uv's error, and its exit code."""
    done = machine.install("no-such-package==1")
    assert done.returncode == 1
    assert "no-such-package" in done.stderr
    assert "CUDA" not in done.stderr
