"""What a CUDA context costs if many processes make one at once, and if each sees one GPU.

    python benchmarks/contexts.py [--processes 1,8,32]

Each process starts CUDA (`cuInit`), makes a context and ends. Beside it the same where every
process sees the device file of its own GPU only, as the sandbox of `kbtools verify` shows it. Needs
Linux, an NVIDIA driver and the right to make mounts (root). Needs no torch: the driver's library is
called directly.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import mean

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from kbtools.running.filesystem_view import (  # noqa: E402
    CLONE_NEWNS,
    MS_BIND,
    MS_PRIVATE,
    MS_REC,
    checked,
    libc,
    mount,
)
from kbtools.running.gpu_devices import GpuDevice, gpu_devices  # noqa: E402

Times = dict[str, float]


def show_alone(own: GpuDevice, devices: list[GpuDevice], empty: str) -> None:
    """Covers the device files of the other GPUs for this process."""
    checked(libc.unshare(CLONE_NEWNS))
    mount("none", "/", None, MS_REC | MS_PRIVATE)
    for device in devices:
        if device != own:
            mount(empty, device.file, None, MS_BIND)


def context(start: float) -> Iterator[tuple[str, float]]:
    """Makes a context and ends it: the name of each step, and its seconds.

    Raises:
        RuntimeError: CUDA refuses a step.
    """
    time.sleep(max(0.0, start - time.time()))
    cuda = ctypes.CDLL("libcuda.so.1")
    device, handle = ctypes.c_int(), ctypes.c_void_p()
    steps = {
        "cuInit": lambda: cuda.cuInit(0) or cuda.cuDeviceGet(ctypes.byref(device), 0),
        "context": lambda: cuda.cuDevicePrimaryCtxRetain(ctypes.byref(handle), device),
        "end": lambda: cuda.cuDevicePrimaryCtxRelease_v2(device),
    }
    for name, step in steps.items():
        before = time.perf_counter()
        if code := step():
            raise RuntimeError(f"{name}: error {code}")
        yield name, time.perf_counter() - before


def trial(count: int, devices: list[GpuDevice], gpus: int, empty: str) -> tuple[float, list[Times]]:
    """Wall seconds until all processes have ended, and each one's steps.

    Args:
        count: Of processes, shared out over the first GPUs.
        devices: All GPUs of the machine.
        gpus: How many of them are used.
        empty: A file that covers those that a process does not have; "": it sees all.
    """
    reading, writing = os.pipe()
    start = time.time() + 0.3
    for number in range(count):
        if os.fork() == 0:
            own = devices[number % gpus]
            try:
                os.environ["CUDA_VISIBLE_DEVICES"] = own.uuid
                if empty:
                    show_alone(own, devices, empty)
                os.write(writing, json.dumps(dict(context(start))).encode() + b"\n")
            except Exception as error:
                os.write(writing, json.dumps({"error": str(error)}).encode() + b"\n")
            os._exit(0)
    for _ in range(count):
        os.wait()
    wall = time.time() - start
    os.close(writing)
    with os.fdopen(reading) as lines:
        times = [json.loads(line) for line in lines]
    if failed := [time["error"] for time in times if "error" in time]:
        raise SystemExit(f"{len(failed)} of {count} processes failed: {failed[0]}")
    return wall, times


def main() -> None:
    """Prints a line for each number of processes, of GPUs, and of what a process sees."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--processes", default="1,8,32", help="numbers of processes, with commas")
    options = parser.parse_args()
    devices = gpu_devices()
    if not devices:
        raise SystemExit("no NVIDIA GPU here")
    print(f"{len(devices)} GPUs. Seconds, the steps as means over the processes")
    print("processes  GPUs used  sees   wall  each    cuInit  context     end")
    with tempfile.NamedTemporaryFile() as empty:
        for gpus in sorted({1, len(devices)}):
            for count in map(int, options.processes.split(",")):
                for sees, cover in (("all", ""), ("own", empty.name)):
                    wall, times = trial(count, devices, gpus, cover)
                    steps = [mean(time[n] for time in times) for n in ("cuInit", "context", "end")]
                    print(
                        f"{count:>9}  {gpus:>9}  {sees:<4} {wall:6.2f} {wall / count:5.3f}  "
                        + " ".join(f"{seconds:8.2f}" for seconds in steps),
                        flush=True,
                    )


if __name__ == "__main__":
    main()
