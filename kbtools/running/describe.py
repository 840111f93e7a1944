"""Prints what the interpreter that runs it holds, as one JSON object. Standard library only.

Its arguments are the table `[toolchain.ptxas]` of `kbtools.toml`, as JSON, and names of programs:
those of them that are on the PATH are listed, too.

Run by the toolchain's own Python (3.9 or newer); imports none of the packages it lists.
"""

from __future__ import annotations

import importlib.util
import json
import os
import platform
import re
import shutil
import subprocess
import sys
from importlib import metadata
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


def output_of(*command: str) -> str:
    """What a command prints; nothing if it cannot be run or fails."""
    try:
        process = subprocess.run(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=30, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return process.stdout.decode("utf-8", "replace").strip()


def packages() -> dict[str, str]:
    """Canonical name → version of every installed distribution."""
    versions: dict[str, str] = {}
    for distribution in metadata.distributions():
        name = distribution.metadata["Name"]
        if name:
            # of several builds an import finds the first on the path
            versions.setdefault(re.sub(r"[-_.]+", "-", name).lower(), distribution.version)
    return versions


def gpus() -> tuple[list[dict[str, str]], str | None]:
    """The GPUs that CUDA_VISIBLE_DEVICES leaves, as name and compute capability, and the driver."""
    fields = "name,compute_cap,driver_version,index,uuid"
    rows = output_of("nvidia-smi", "--query-gpu=" + fields, "--format=csv,noheader")
    cells = [[cell.strip() for cell in row.split(",")] for row in rows.splitlines()]
    cells = [row for row in cells if len(row) == 5]
    driver = cells[0][2] if cells else None
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is not None:
        cells = list(visible_of(cells, visible))
    return [{"name": r[0], "sm": r[1]} for r in cells], driver


def visible_of(cells: list[list[str]], visible: str) -> Iterator[list[str]]:
    """Those of these GPUs that CUDA sees: it stops at the first name that it does not know."""
    for name in visible.split(","):
        device = [row for row in cells if name.strip() == row[3] or row[4].startswith(name.strip())]
        if not name.strip() or not device:
            return
        yield device[0]


def release(text: str) -> str | None:
    """The `13.0.88` or `13.0` in what nvcc and ptxas print as their version."""
    match = re.search(r"\bV(\d+\.\d+\.\d+)", text) or re.search(r"release (\d+\.\d+)", text)
    return match.group(1) if match else None


def places(module: str, paths: list[str]) -> Iterator[tuple[str, str]]:
    """Where the compiler of a module finds ptxas, and what to call each place.

    A path that begins with `$` is the value of a variable; the others are in the module's folder.
    """
    spec = importlib.util.find_spec(module)
    for path in paths:
        if path.startswith("$"):
            yield os.environ.get(path[1:], ""), path[1:]
        else:
            for root in (spec.submodule_search_locations or []) if spec else []:
                yield os.path.join(root, path), module


def ptxas(of_modules: dict[str, list[str]]) -> dict[str, str] | None:
    """The assembler that is used: the first that a module brings, else the one on the PATH."""
    candidates = [place for module, paths in of_modules.items() for place in places(module, paths)]
    candidates.append((shutil.which("ptxas") or "", "PATH"))
    for path, source in candidates:
        if path and os.access(path, os.X_OK):
            version = release(output_of(path, "--version"))
            if version:
                return {"version": version, "source": source}
    return None


def main() -> None:
    """Prints the object."""
    cards, driver = gpus()
    nvcc = release(output_of("nvcc", "--version"))
    compiler = output_of("c++", "--version").splitlines()
    json.dump(
        {
            "python": platform.python_version(),
            "packages": packages(),
            "platform": "-".join((sys.platform, platform.machine())),
            "libc": " ".join(platform.libc_ver()).strip(),
            "compiler": compiler[0] if compiler else "",
            "kernel": platform.release(),
            "cuda": nvcc,
            "driver": driver,
            "gpus": cards,
            "ptxas": ptxas(json.loads(sys.argv[1]) if sys.argv[1:] else {}),
            "programs": [name for name in sys.argv[2:] if shutil.which(name)],
        },
        sys.stdout,
    )


if __name__ == "__main__":
    main()
