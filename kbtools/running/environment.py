"""The environment variables that a toolchain and its snippets see: an allow-list."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from kbtools.running.model import Run

ALLOWED = (
    *("PATH", "LD_LIBRARY_PATH", "CUDA_HOME", "CUDA_PATH", "CC", "CXX", "TZ"),
    *("SYSTEMROOT", "NVIDIA_VISIBLE_DEVICES", "NVIDIA_DRIVER_CAPABILITIES"),
    "CUDA_VISIBLE_DEVICES",  # restricts kbtools; a snippet sees those that it gets of these
    *("NCCL_NVLS_ENABLE", "TORCH_SYMM_MEM_DISABLE_MULTICAST", "NVSHMEM_DISABLE_NVLS"),
)
"""Variables that a snippet inherits. Everything else, tokens above all, it does not see."""


def base_environment(python: str, more: Sequence[str] = ()) -> dict[str, str]:
    """The environment that a toolchain is asked and run in: an allow-list, and its `bin` first."""
    env = {name: os.environ[name] for name in (*ALLOWED, *more) if name in os.environ}
    folders = [str(Path(python).parent), env.get("PATH", os.defpath)]
    defaults = {
        # with a thread for every core, many snippets at once wait for each other most of the time;
        # two are enough for what fails with several only
        "OMP_NUM_THREADS": "2",
    }
    return {
        **defaults,
        **env,
        "PATH": os.pathsep.join(folders),
        "LANG": "C.UTF-8",
        "LC_ALL": "C.UTF-8",
        # with caches of its own every snippet would precompile the headers anew and use them once,
        # and try each vector instruction set on the compiler: most of the time of a small kernel
        "TORCHINDUCTOR_CPP_CACHE_PRECOMPILE_HEADERS": "0",
        "TORCHINDUCTOR_VEC_ISA_OK": "1",
    }


def snippet_environment(
    base: dict[str, str], run: Run, scratch: Path, modules: Path
) -> dict[str, str]:
    """Every variable that a snippet sees; those of the run itself come last.

    base: what `base_environment` says of its toolchain.
    scratch: the folder below which are its home, its temporary folder and its caches, all empty.
    modules: the folder that holds the package `kbtools` of snippets.
    """
    cache = f"{scratch}/cache"
    visible = base.get("CUDA_VISIBLE_DEVICES")
    names = (
        visible.split(",") if visible else [str(gpu) for gpu in range(max(run.gpus, default=0) + 1)]
    )
    return base | {
        "HOME": f"{scratch}/work",
        "TMPDIR": f"{scratch}/tmp",
        "PYTHONPATH": str(modules),
        "PYTHONDONTWRITEBYTECODE": "1",
        "TRITON_CACHE_DIR": f"{cache}/triton",
        "TORCHINDUCTOR_CACHE_DIR": f"{cache}/inductor",
        "TORCH_EXTENSIONS_DIR": f"{cache}/extensions",
        "CUDA_CACHE_PATH": f"{cache}/cuda",
        "XDG_CACHE_HOME": cache,
        "CUDA_VISIBLE_DEVICES": ",".join(names[gpu].strip() for gpu in run.gpus),
        "KBTOOLS_TARGETS": f"{scratch}/targets",
        **run.env,
    }
