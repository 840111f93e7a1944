"""What is read off an interpreter: the ptxas that is used, several builds of one package."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import venv
from pathlib import Path

import pytest

import kbtools.running
from kbtools.config import ToolchainForm
from kbtools.running import Run
from kbtools.running.environment import snippet_environment
from kbtools.toolchains.model import Toolchain, describe

BIN = "triton/backends/nvidia/bin"
FORM = ToolchainForm(ptxas={"triton": ("$TRITON_PTXAS_PATH", "backends/nvidia/bin/ptxas")})
DESCRIBE = Path(kbtools.running.__file__).parent / "describe.py"


@pytest.fixture
def environment(tmp_path: Path) -> Path:
    """An empty environment; its folder of installed packages."""
    venv.create(tmp_path / "env", with_pip=False)
    [packages] = (tmp_path / "env" / "lib").glob("python*/site-packages")
    return packages


def described(packages: Path, *path: Path) -> Toolchain:
    """The toolchain of an environment, these folders first on its PATH."""
    python = packages.parents[2] / "bin" / "python"
    folders = os.pathsep.join(map(str, (*path, "/usr/bin", "/bin")))
    return describe(str(python), FORM, {"PATH": folders})


def test_programs(environment: Path, tmp_path: Path) -> None:
    """Of the programs that are asked for, those on the PATH are listed; others are not named."""
    tool(tmp_path / "bin", "cuobjdump", "12.8.55")
    python = environment.parents[2] / "bin" / "python"
    form = ToolchainForm(programs=("cuobjdump", "nvdisasm-that-nobody-has"))
    (tmp_path / "bin" / "cuobjdump").chmod(0o644)
    toolchain = describe(str(python), form, {"PATH": str(tmp_path / "bin")})
    assert toolchain.programs == ()  # it is no program before it may be executed
    (tmp_path / "bin" / "cuobjdump").chmod(0o755)
    toolchain = describe(str(python), form, {"PATH": str(tmp_path / "bin")})
    assert toolchain.programs == ("cuobjdump",)
    assert described(environment).programs == ()


def install(packages: Path, name: str, version: str) -> None:
    """Makes a distribution appear to be installed."""
    info = packages / f"{name}-{version}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")


def tool(folder: Path, name: str, release: str) -> None:
    """Makes a compiler that only prints its version."""
    folder.mkdir(parents=True, exist_ok=True)
    text = f"Cuda compilation tools, release {release.rpartition('.')[0]}, V{release}"
    (folder / name).write_text(f"#!/bin/sh\necho '{text}'\n")
    (folder / name).chmod(0o755)


def test_one_object_is_printed(tmp_path: Path) -> None:
    """`describe.py` prints what its interpreter and the machine have, and nothing else."""
    tool(tmp_path, "nvidia-smi", "12.8.93")
    (tmp_path / "nvidia-smi").write_text(
        "#!/bin/sh\necho 'A GPU, 9.0, 580.1, 0, GPU-a1'\necho 'bad row'\n"
    )
    variables = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    printed = subprocess.check_output([sys.executable, str(DESCRIBE)], env=variables, timeout=60)
    described = json.loads(printed)
    assert described["python"] == platform.python_version()
    assert described["packages"]["pytest"] == pytest.__version__
    assert (described["gpus"], described["driver"]) == ([{"name": "A GPU", "sm": "9.0"}], "580.1")


def test_the_ptxas_of_triton_counts(environment: Path, tmp_path: Path) -> None:
    """With Triton installed, the assembler in its wheel is the one that is used, not the PATH's."""
    (environment / "triton").mkdir()
    (environment / "triton" / "__init__.py").touch()
    tool(environment / BIN, "ptxas", "12.8.93")
    tool(tmp_path / "bin", "ptxas", "13.0.88")
    ptxas = described(environment, tmp_path / "bin").ptxas
    assert ptxas is not None
    assert (ptxas.version, ptxas.source) == ("12.8.93", "triton")


def test_the_ptxas_of_the_path_comes_second(environment: Path, tmp_path: Path) -> None:
    """Without Triton it is the one on the PATH, which nvcc would run."""
    tool(tmp_path / "bin", "ptxas", "13.0.88")
    tool(tmp_path / "bin", "nvcc", "13.0.88")
    toolchain = described(environment, tmp_path / "bin")
    assert toolchain.ptxas is not None
    assert (toolchain.ptxas.source, toolchain.cuda) == ("PATH", "13.0.88")


def test_another_ptxas_is_another_toolchain(environment: Path, tmp_path: Path) -> None:
    """A toolchain with another assembler is another toolchain, with evidence of its own."""
    tool(tmp_path / "old", "ptxas", "12.4.131")
    tool(tmp_path / "new", "ptxas", "13.0.88")
    old, new = (described(environment, tmp_path / name) for name in ("old", "new"))
    assert old.identity != new.identity


def test_the_build_that_an_import_finds_counts(environment: Path, tmp_path: Path) -> None:
    """Of two installed builds of a package, the first on the path is recorded."""
    install(environment, "torch", "2.6.0+cu124")
    install(tmp_path / "later", "torch", "2.5.1+cu121")
    (environment / "later.pth").write_text(f"{tmp_path / 'later'}\n")
    assert described(environment).packages["torch"] == "2.6.0+cu124"


def test_two_builds_of_a_version_are_two_toolchains(environment: Path) -> None:
    """Ranges ignore the local part of a version; the identity of a toolchain does not."""
    install(environment, "torch", "2.6.0+cu124")
    with_cuda = described(environment)
    (environment / "torch-2.6.0+cu124.dist-info").rename(environment / "torch-2.6.0+cpu.dist-info")
    file = environment / "torch-2.6.0+cpu.dist-info" / "METADATA"
    file.write_text(file.read_text().replace("+cu124", "+cpu"))
    assert with_cuda.identity != described(environment).identity


@pytest.mark.parametrize(
    ("visible", "expected"),
    [
        ("0", ["A"]),
        ("1,0", ["B", "A"]),
        ("GPU-b", ["B"]),
        ("", []),
        ("-1", []),
        ("1,7,0", ["B"]),
    ],
)
def test_visible_gpus(environment: Path, tmp_path: Path, visible: str, expected: list[str]) -> None:
    """CUDA_VISIBLE_DEVICES restricts what is there, as CUDA reads it."""
    tools = tmp_path / "tools"
    tool(tools, "nvidia-smi", "12.8.93")
    rows = "A, 9.0, 580.1, 0, GPU-a1\nB, 9.0, 580.1, 1, GPU-b2"
    (tools / "nvidia-smi").write_text(f"#!/bin/sh\nprintf '{rows}\n'\n")
    python = environment.parents[2] / "bin" / "python"
    variables = {"PATH": f"{tools}:/usr/bin:/bin", "CUDA_VISIBLE_DEVICES": visible}
    toolchain = describe(str(python), ToolchainForm(), variables)
    assert [gpu.name for gpu in toolchain.gpus] == expected


def test_a_snippet_sees_its_own_of_the_visible(tmp_path: Path) -> None:
    """A run's GPUs are counted among those that CUDA_VISIBLE_DEVICES leaves."""
    run = Run(source="pass", language="python", display_path="a.md", gpus=(1,))
    for visible, expected in (({}, "1"), ({"CUDA_VISIBLE_DEVICES": "3, 5"}, "5")):
        variables = snippet_environment(visible, run, tmp_path, tmp_path)
        assert variables["CUDA_VISIBLE_DEVICES"] == expected
