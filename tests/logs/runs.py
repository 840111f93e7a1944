"""One run of a recipe: a scratch folder, a clean environment, a time limit, no traces left."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

import passages
import wrappers
from recipes import Recipe

REPRO = Path(__file__).parent.parent.parent / "kbtools" / "repro.py"
"""Programs may import it as `ahead`: compiling for a GPU that is not there."""

VERSIONS = """
import platform
from importlib import metadata
found = [f"python {platform.python_version()}"]
names = ("torch", "triton", "flashinfer-python", "ray", "deepspeed", "accelerate", "lightning")
for name in (*names, "vllm", "sglang"):
    try: found.append(f"{name} {metadata.version(name)}")
    except metadata.PackageNotFoundError: pass
print(", ".join(found))
"""


KEPT = (
    *("CUDA_HOME", "CUDA_VISIBLE_DEVICES", "LD_LIBRARY_PATH"),
    *("KBTOOLS_PYTHONS", "KBTOOLS_TOOLCHAINS"),
)
"""The variables that a run sees as they are."""
PROGRAMS = ("nvcc", "g++", "cmake", "ninja", "compute-sanitizer", "nvidia-smi")
"""Found on the PATH of whoever runs this; the rest of that PATH is no run's business."""


def interpreter(toolchain: str) -> Path | None:
    """The Python of a toolchain, if it is there."""
    if toolchain == "here":
        return Path(sys.executable)
    python = Path(os.environ.get("KBTOOLS_TOOLCHAINS", "")) / toolchain / "bin" / "python"
    return python if python.exists() else None


@cache
def versions(python: Path) -> str:
    """What an interpreter holds, in words."""
    done = subprocess.run([python, "-c", VERSIONS], capture_output=True, text=True, check=True)
    return done.stdout.strip()


@cache
def compilers() -> str:
    """The nvcc and the C++ compiler on the PATH, in words."""
    words = []
    for name, pattern in (("nvcc", r"V([\d.]+)"), ("g++", r"\) ([\d.]+)")):
        if shutil.which(name):
            text = subprocess.run([name, "--version"], capture_output=True, text=True).stdout
            words += [f"{name} {found[1]}"] if (found := re.search(pattern, text)) else []
    return ", ".join(words)


def toolchain(recipe: Recipe, python: Path) -> str:
    """The versions that a recipe's program may touch, in words."""
    if recipe.language == "python":
        return versions(python)
    return f"{compilers()}, {versions(python)}" if "python" in recipe.code else compilers()


def environment(recipe: Recipe, python: Path, project: Path, tools: Path | None) -> dict[str, str]:
    """A clean one: no settings and no caches of whoever runs this."""
    home = project.parent
    kept = {key: os.environ[key] for key in KEPT if key in os.environ}
    found = [shutil.which(name) for name in PROGRAMS]
    path = [
        str(home / "bin"),
        str(python.parent),
        *map(str, python.parent.parent.glob("lib/python3*/site-packages/nvidia/*/bin")),
        *(str(Path(program).parent) for program in found if program),
        *("/usr/local/bin", "/usr/bin", "/bin", "/usr/sbin", "/sbin"),
    ]
    own = os.environ.get("PYTHONPATH", "") if recipe.on == "here" else ""
    modules = [str(project), *([str(tools)] if tools else []), *([own] if own else [])]
    env = {
        **kept,
        "PATH": os.pathsep.join(dict.fromkeys(path)),
        "HOME": str(home),
        "USER": "user",
        "LOGNAME": "user",
        "TMPDIR": str(home / "tmp"),
        "LANG": "C.UTF-8",
        "TERM": "xterm-256color",
        "COLUMNS": "100",
        "PYTHONPATH": os.pathsep.join(modules),
        "PYTHONDONTWRITEBYTECODE": "1",
        "OMP_NUM_THREADS": "2",
    }
    return {**env, **recipe.env}


def write_program(recipe: Recipe, project: Path) -> str:
    """Write what runs into the project's folder; gives the command."""
    shutil.copy(REPRO, project / "ahead.py")
    if recipe.language == "bash":
        (project / "job.sh").write_text(recipe.code, "utf-8")
        return "bash job.sh"
    way, module = wrappers.RUNS[recipe.run], Path(recipe.file).stem
    code = recipe.code + ("" if way.driver or "main()" not in recipe.code else wrappers.MAIN)
    (project / recipe.file).write_text(code, "utf-8")
    (project / "book.ipynb").write_text(wrappers.notebook(recipe.code), "utf-8")
    if way.driver:
        (project / way.file).write_text(way.driver.format(m=module, f=recipe.file), "utf-8")
    return way.command.format(driver=way.file, m=module, f=recipe.file)


def run(command: str, project: Path, env: dict[str, str], limit: int) -> bytes:
    """Both streams of a command in the order written; its processes are ended with it."""
    with tempfile.TemporaryFile() as file:
        child = subprocess.Popen(
            ["bash", "-c", command],
            cwd=project,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(limit)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
            child.wait()
        file.seek(0)
        return file.read()


def redact(output: bytes, project: Path, python: Path, tools: Path | None) -> bytes:
    """Put places that anyone could have in the place of this machine's."""
    home = project.parent
    base = Path(os.path.realpath(python)).parent.parent
    places = {
        str(home / "tmp"): "/tmp",
        str(home): "/home/user",
        str(base): f"/home/user/.pyenv/versions/{base.name}",
        str(python.parent.parent): "/home/user/venv",
        str(python.parent.parent.resolve()): "/home/user/venv",
        **({str(tools): "/home/user/venv/lib/python3.11/site-packages"} if tools else {}),
    }
    text = output
    for place, other in sorted(places.items(), key=lambda item: -len(item[0])):
        if place not in ("/usr", "/usr/local"):
            text = text.replace(place.encode(), other.encode())
    if others := os.environ.get("KBTOOLS_TOOLCHAINS"):
        folder = re.escape(others.rstrip("/").encode())
        text = re.sub(folder + rb"/\.builds/[^/]+/env-\w+", b"/home/user/venv", text)
        text = re.sub(folder + rb"/(?=\w)", b"/home/user/", text)
    text = re.sub(rb"(?<![\w.~])/root\b", b"/home/user", text)
    host = rb"(?<![\w-])" + re.escape(socket.gethostname().encode()) + rb"(?=[\s:_\]]|$)"
    return re.sub(host, b"node01", text)


def make(recipe: Recipe, tools: Path | None) -> tuple[bytes | None, str]:
    """A recipe's log and the toolchain it was made on; or nothing, and why."""
    python = interpreter(recipe.on)
    if python is None:
        return None, f"no toolchain {recipe.on}"
    with tempfile.TemporaryDirectory(prefix="corpus-") as folder:
        project = Path(folder).resolve() / "project"
        for place in (project, project.parent / "tmp", project.parent / "bin"):
            place.mkdir()
        if not (python.parent / "python").exists():  # a system that knows only python3
            link = project.parent / "bin" / "python"
            link.write_text(f'#!/bin/sh\nexec {python} "$@"\n', "utf-8")
            link.chmod(0o755)
        command = write_program(recipe, project)
        way = wrappers.RUNS.get(recipe.run)
        used = tools if way and way.tools else None
        output = run(command, project, environment(recipe, python, project, used), recipe.limit)
        output = redact(output, project, python, used)
    if recipe.shows.encode() not in output:
        end = output.decode("utf-8", "replace")[-1500:]
        return None, f"the output lacks {recipe.shows!r}; it ends with:\n{end}"
    return passages.send(output, recipe.through), toolchain(recipe, python)
