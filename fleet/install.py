"""Installs packages with uv from where pip would take them; never gigabytes that nobody asked for.

    PYTHONPATH=. .venv/bin/python fleet/install.py --torch auto --editable '.[run]'

torch has a build with CUDA and a small one without. `cpu` takes the small one: what pip is set to
find, else that of PyTorch's own index. `cuda` takes what the package index has. `auto` is `cuda` on
a machine with an NVIDIA driver, else `cpu`.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from pathlib import Path

from kbtools.toolchains.pip_settings import read_pip_settings

CPU_INDEX = "https://download.pytorch.org/whl/cpu"
SIZE = "about 2.7 GB"
"""Of torch 2.13.0, Triton and CUDA's libraries, by the sizes that the package index states."""
NO_CPU_BUILD = f"""\
no build of torch without CUDA: neither pip's indexes nor {{index}} has one that fits.
next: TORCH_CPU_INDEX=ADDRESS names another index, TORCH=cuda takes the build with CUDA ({SIZE}),
TORCH=no goes without torch, as in: make kb TORCH=no"""
DRIVER = (Path("/proc/driver/nvidia/version"), Path("/dev/nvidiactl"), Path("/dev/dxg"))
"""One of them is there where an NVIDIA driver is; the last one in Windows' Linux."""


def uv(words: list[str], environment: dict[str, str], **options: bool) -> tuple[int, str]:
    """Runs uv; its exit code, and what it printed if `capture_output` is asked for."""
    program = str(Path(sys.executable).with_name("uv"))
    process = subprocess.run([program, "pip", *words], env=environment, text=True, **options)
    return process.returncode, process.stderr or ""


def downloads_cuda(install: list[str], environment: dict[str, str]) -> bool | None:
    """Whether an installation would bring libraries of CUDA; None if it cannot be resolved."""
    code, plan = uv([*install, "--dry-run"], environment, capture_output=True)
    return None if code else bool(re.search(r"^ \+ nvidia-", plan, re.MULTILINE))


def main() -> int:
    """Installs what the command line names."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--torch", choices=["auto", "cpu", "cuda"], default="auto")
    parser.add_argument("--python", default=sys.executable, help="of the environment")
    options, requirements = parser.parse_known_args()
    # snippets cannot write bytecode: what is not compiled now is compiled for each of them
    install = ["install", "--python", options.python, "--compile-bytecode", *requirements]
    settings = read_pip_settings()
    install += ["--no-index"] if settings.no_index else []
    environment = {**os.environ, **settings.for_uv(os.environ)}
    has_driver = any(file.exists() for file in DRIVER)
    takes_cuda = options.torch == "cuda" or (options.torch == "auto" and has_driver)
    if downloads_cuda(install, environment):
        if takes_cuda:
            print(f"torch with CUDA is downloaded, {SIZE}; TORCH=cpu takes 0.4 GB, TORCH=no none")
        else:
            index = os.environ.get("TORCH_CPU_INDEX", CPU_INDEX)
            environment["UV_INDEX"] = f"{environment.get('UV_INDEX', '')} {index}".strip()
            environment["UV_INDEX_STRATEGY"] = "unsafe-best-match"  # the best of all indexes
            if downloads_cuda(install, environment) is not False:
                print(NO_CPU_BUILD.format(index=index), file=sys.stderr)
                return 2
    code, _ = uv([*install] if sys.stderr.isatty() else [*install, "--quiet"], environment)
    return code


if __name__ == "__main__":
    sys.exit(main())
