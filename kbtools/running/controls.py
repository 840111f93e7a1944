"""Known-good programs: when even these fail, it is the machine that is unwell."""

from __future__ import annotations

import shutil

from kbtools.running.executor import Executor
from kbtools.running.model import Run

PYTHON = "assert sum(range(10)) == 45\n"
GPU = """\
import ctypes

cuda = ctypes.CDLL("libcuda.so.1")
context = ctypes.c_void_p()
memory = ctypes.c_uint64()
assert cuda.cuInit(0) == 0
assert cuda.cuCtxCreate_v2(ctypes.byref(context), 0, 0) == 0
assert cuda.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(1 << 20)) == 0
assert cuda.cuMemsetD8_v2(memory, ctypes.c_ubyte(7), ctypes.c_size_t(1 << 20)) == 0
assert cuda.cuCtxSynchronize() == 0
"""
CUDA = "__global__ void kernel(int *x) { x[threadIdx.x] = 1; }\n"


def control_for(language: str, requires: str, gpus: tuple[int, ...]) -> Run:
    """A program that needs what a snippet of that kind needs, and surely works."""
    if gpus:
        return Run(source=GPU, language="python", shown="control", gpus=gpus, spawn=True)
    if language == "cuda" or requires == "nvcc":
        return Run(source=CUDA, language="cuda", shown="control", suffix=".cu", compile_only=True)
    if language == "bash":
        return Run(source="true\n", language="bash", shown="control", suffix=".sh")
    return Run(source=PYTHON, language="python", shown="control", spawn=True)


def health_problem(executor: Executor, language: str, requires: str, gpus: tuple[int, ...]) -> str:
    """Why a red verdict says more of this machine than of the article; empty when it does not.

    A known-good control that needs what the snippet needed is run.
    """
    if shutil.disk_usage(executor.folder).free < 64 << 20:
        return "its disk is full"
    outcome = executor.run(control_for(language, requires, gpus))
    return "" if outcome.status == "passed" else f"a known-good control failed: {outcome.ended}"
