"""Known-good programs: if one of these fails, the machine is unwell."""

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


def control_for(run: Run) -> Run:
    """A known-good program that needs what a run needed, on the first of the run's GPUs."""
    if run.gpus:
        gpus = run.gpus[:1]
        return Run(source=GPU, language="python", display_path="control", gpus=gpus, spawn=True)
    if run.language == "cuda" or run.compile_only:
        return Run(
            source=CUDA, language="cuda", display_path="control", suffix=".cu", compile_only=True
        )
    if run.language == "bash":
        return Run(source="true\n", language="bash", display_path="control", suffix=".sh")
    return Run(source=PYTHON, language="python", display_path="control", spawn=True)


def health_problem(executor: Executor, run: Run) -> str:
    """Why a red verdict may be the fault of this machine; empty if it is well.

    A known-good control is run that needs what the run needed.
    """
    if shutil.disk_usage(executor.folder).free < 64 << 20:
        return "its disk is full"
    outcome = executor.run(control_for(run))
    return "" if outcome.status == "passed" else f"a known-good control failed: {outcome.ended}"
