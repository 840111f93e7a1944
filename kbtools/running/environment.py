"""The environment variables that a toolchain and its snippets see: an allow-list."""

from __future__ import annotations

import os
from pathlib import Path

from kbtools.config import Running
from kbtools.running.model import Run
from kbtools.running.variables import CACHE

ALLOWED = (
    *("PATH", "LD_LIBRARY_PATH", "CUDA_HOME", "CUDA_PATH", "CC", "CXX", "TZ"),
    *("SYSTEMROOT", "NVIDIA_VISIBLE_DEVICES", "NVIDIA_DRIVER_CAPABILITIES"),
    "CUDA_VISIBLE_DEVICES",  # restricts kbtools; a snippet sees those that it gets of these
)
"""Variables that a snippet inherits. Everything else, tokens above all, it does not see."""
NOTHING_MORE = Running()
"""A table `[run]` without a key."""


def base_environment(python: str, running: Running = NOTHING_MORE) -> dict[str, str]:
    """The environment that a toolchain is asked and run in: an allow-list, and its `bin` first.

    Args:
        python: Path of the toolchain's interpreter.
        running: The table `[run]`; its `variables` that name no folder of a run are part of it.
    """
    allowed = (*ALLOWED, *running.environment)
    env = {name: os.environ[name] for name in allowed if name in os.environ}
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
        **{name: text for name, text in running.variables.items() if CACHE not in text},
    }


def snippet_environment(
    base: dict[str, str],
    run: Run,
    scratch: Path,
    modules: Path,
    running: Running = NOTHING_MORE,
    *,
    others_hidden: bool = False,
) -> dict[str, str]:
    """Every variable that a snippet sees; those of the run itself come last.

    base: what `base_environment` says of its toolchain.
    scratch: the folder below which are its home, its temporary folder and its caches, all empty.
    modules: the folder that holds the package `kbtools` of snippets.
    running: the table `[run]`, whose `variables` name its caches.
    others_hidden: whether the snippet sees no GPU but its own, so that CUDA counts these from 0.
    """
    cache = f"{scratch}/cache"
    names = gpu_names(base, run)
    own = range(len(run.gpus)) if others_hidden else (names[gpu].strip() for gpu in run.gpus)
    return base | {
        "HOME": f"{scratch}/work",
        "TMPDIR": f"{scratch}/tmp",
        "PYTHONPATH": str(modules),
        "PYTHONDONTWRITEBYTECODE": "1",
        "CUDA_CACHE_PATH": f"{cache}/cuda",
        "XDG_CACHE_HOME": cache,
        "CUDA_VISIBLE_DEVICES": ",".join(map(str, own)),
        "KBTOOLS_TARGETS": f"{scratch}/targets",
        **{n: text.replace(CACHE, cache) for n, text in running.variables.items() if CACHE in text},
        **run.env,
    }


def gpu_names(base: dict[str, str], run: Run) -> list[str]:
    """What CUDA_VISIBLE_DEVICES calls the GPUs that kbtools may use, at least up to the run's.

    Args:
        base: As `base_environment` gives it.
        run: Whose `gpus` are indices in the list.
    """
    visible = base.get("CUDA_VISIBLE_DEVICES")
    return visible.split(",") if visible else [str(n) for n in range(max(run.gpus, default=0) + 1)]
