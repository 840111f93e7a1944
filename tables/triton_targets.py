"""Prints for which GPU targets the Triton of this interpreter really assembles a kernel.

Each target is tried in a process of its own, since a compiler may abort. No GPU is needed.
"""

import json
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import kbtools.repro  # lets Triton 2.x be imported without torch

# isort: split
import triton
import triton.language as tl

TARGETS = (70, 75, 80, 86, 89, 90, 100, 103, 110, 120, 121)
SECONDS = 120


@triton.jit
def add(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i, mask=i < n) + 1.0, mask=i < n)


@triton.jit
def dot(a, b, c, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    at = i[:, None] * BLOCK + i[None, :]
    tl.store(c + at, tl.dot(tl.load(a + at), tl.load(b + at)))


KERNELS = {
    "add": (add, {"x": "*fp32", "y": "*fp32", "n": "i32"}, {"BLOCK": 128}),
    "dot": (dot, {"a": "*fp16", "b": "*fp16", "c": "*fp32"}, {"BLOCK": 64}),
}


def assemble(name, sm):
    """Compile one kernel down to machine code, in this process."""
    kernel, signature, constants = KERNELS[name]
    assert len(kbtools.repro.triton_aot(kernel, signature, constants, sm=sm)["cubin"]) > 500


def attempt(name, sm):
    """Empty if the kernel was assembled, else the line that says why not."""
    command = [sys.executable, __file__, name, str(sm)]
    try:
        run = subprocess.run(
            command, capture_output=True, text=True, errors="replace", timeout=SECONDS
        )
    except subprocess.TimeoutExpired:
        return f"no end after {SECONDS} s"
    if run.returncode == 0:
        return ""
    lines = [line.strip() for line in (run.stdout + run.stderr).splitlines() if line.strip()]
    telling = [
        line for line in lines if re.search(r"fatal|error|not a recognized|LLVM ERROR", line, re.I)
    ]
    telling.sort(key=lambda line: "fatal" not in line)  # a warning of LLVM stands before it
    reason = (telling or lines or [f"exit code {run.returncode}"])[0]
    return re.sub(r"/\S*/", "", reason)[:160]


def ptxas():
    """The versions of the assemblers that this Triton brings."""
    folder = Path(triton.__file__).parent
    found = sorted(
        {
            *folder.glob("backends/nvidia/bin/ptxas*"),
            *folder.glob("common/../third_party/cuda/bin/ptxas"),
        }
    )
    texts = (
        subprocess.run([str(f), "--version"], capture_output=True, text=True).stdout for f in found
    )
    return sorted({m[1] for text in texts if (m := re.search(r"V([\d.]+)", text))})


def main():
    version = metadata.version("triton")
    for sm in TARGETS:
        why = {name: attempt(name, sm) for name in KERNELS}
        row = {
            "about": {"triton": f"=={version}", "sm": f"=={sm // 10}.{sm % 10}"},
            "works": not why["add"],
            "facts": {"kernels": [name for name in KERNELS if not why[name]], "ptxas": ptxas()},
            "note": next((f"{name}: {text}" for name, text in why.items() if text), ""),
        }
        print(json.dumps(row))


if __name__ == "__main__":
    if len(sys.argv) > 1:
        assemble(sys.argv[1], int(sys.argv[2]))
    else:
        main()
