"""A run that is kept: its scratch folder stays, and a script repeats it by hand."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kbtools.config import Running
from kbtools.running import Executor, Run
from kbtools.running.kept import KeepError, repeat_command

ARTICLE = "kb/KB0001-an-article.md"
WRITES = """
import os, sys

import kbtools.repro

open("a file", "w").write("by the run")
print(sys.argv[1:], os.environ["NAME"], "TOKEN" in os.environ, os.listdir("."))
raise OSError("the failure")
"""


@pytest.fixture
def executor() -> Iterator[Executor]:
    """An executor of this interpreter."""
    with Executor(sys.executable, Running()) as executor:
        yield executor


def repeat(folder: Path) -> subprocess.CompletedProcess[str]:
    """Runs the command that repeats a kept run."""
    words = shlex.split(repeat_command(folder))
    return subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)


def keep(executor: Executor, folder: Path, source: str, **more: Any) -> Path:
    """Runs a snippet and keeps what it leaves, in a folder with a name that a shell must quote."""
    run = Run(
        source=source,
        display_path=ARTICLE,
        keep=folder / "it's kept",
        **{"language": "python", **more},
    )
    executor.run(run)
    assert run.keep is not None
    return run.keep


def test_the_scratch_folder_stays(executor: Executor, tmp_path: Path) -> None:
    """What the run wrote and printed is there after the executor has removed all else."""
    folder = keep(executor, tmp_path, WRITES, env={"NAME": "a value"})
    executor.close()
    assert (folder / "scratch/work/a file").read_text("utf-8") == "by the run"
    assert "the failure" in (folder / "scratch/output").read_text("utf-8")
    assert not executor.folder.exists()


def test_the_command_repeats_it(
    executor: Executor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command fails as the run did, again and again, in an empty folder and its environment."""
    monkeypatch.setenv("TOKEN", "of the caller")
    folder = keep(executor, tmp_path, WRITES, env={"NAME": "it's"}, tool=("nice",))
    executor.close()
    for _ in range(2):
        done = repeat(folder)
        assert done.returncode == 1 and "OSError: the failure" in done.stderr
        assert done.stdout == "[] it's False ['a file']\n"
    assert (folder / "scratch/work/a file").exists(), "what the run left is not touched"


def test_a_later_run_takes_its_place(executor: Executor, tmp_path: Path) -> None:
    """A second run that is kept in the same folder removes what the first one left there."""
    keep(executor, tmp_path, "open('first', 'w')")
    folder = keep(executor, tmp_path, "open('second', 'w')")
    assert [file.name for file in (folder / "scratch/work").iterdir()] == ["second"]


def test_a_shell_script_is_repeated(executor: Executor, tmp_path: Path) -> None:
    """A bash snippet ends at its first failing command, by hand too."""
    words = {"language": "bash", "suffix": ".sh"}
    folder = keep(executor, tmp_path, "echo before\nfalse\necho after", **words)
    done = repeat(folder)
    assert (done.returncode, done.stdout) == (1, "before\n")
    folder = keep(executor, tmp_path, "echo whole", **words)
    assert (repeat(folder).returncode, (folder / "scratch/output").read_text("utf-8")) == (
        0,
        "whole\n",
    )


def test_cuda_is_repeated(executor: Executor, tmp_path: Path) -> None:
    """A CUDA snippet is compiled, and its program run unless it is compile-only."""
    if not shutil.which("nvcc"):
        pytest.skip("nvcc is not on the PATH")
    words = {"language": "cuda", "suffix": ".cu"}
    folder = keep(executor, tmp_path, "int main() { return 3; }", **words)
    assert repeat(folder).returncode == 3
    folder = keep(executor, tmp_path, "__global__ void k() {}", compile_only=True, **words)
    assert repeat(folder).returncode == 0 and (folder / "again/program").exists()


def test_a_run_cannot_write_through_links(executor: Executor, tmp_path: Path) -> None:
    """Links that a run leaves, under whatever name, lead nothing of ours out of its folder."""
    victim = tmp_path / "victim"
    victim.mkdir()
    names = [f"{Path(ARTICLE).stem}.py", "run.sh", "path", "scratch", "again", "work", "output"]
    links = f"""
import os, shutil

os.chdir("..")
for name in os.listdir("."):
    shutil.rmtree(name, ignore_errors=True)
    if os.path.exists(name):
        os.remove(name)
for name in {names}:
    os.symlink({str(victim)!r} + "/" + name, name)
"""
    folder = keep(executor, tmp_path, links)
    assert (folder / "run.sh").is_file() and not (folder / "run.sh").is_symlink()
    repeat(folder)
    assert list(victim.iterdir()) == []


def test_a_folder_that_cannot_be_written(executor: Executor, tmp_path: Path) -> None:
    """What cannot be kept is said, with the folder and the reason."""
    (tmp_path / "file").touch()
    with pytest.raises(KeepError, match=r"could not be kept as .*: .*Not a directory"):
        keep(executor, tmp_path / "file", "pass")
