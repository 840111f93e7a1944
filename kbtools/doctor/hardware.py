"""The driver and the GPUs of a machine, as its files and nvidia-smi name them."""

from __future__ import annotations

import re
from typing import NamedTuple

from kbtools.doctor.machine import Machine

SMI = ("nvidia-smi", "--query-gpu=name,compute_cap,driver_version", "--format=csv,noheader")


class Gpu(NamedTuple):
    """A GPU, as nvidia-smi names it."""

    name: str
    capability: tuple[int, ...]
    """As in (9, 0)."""


def smi(machine: Machine) -> list[list[str]]:
    """Name, compute capability and driver of each GPU; none if nvidia-smi does not answer."""

    def ask() -> list[list[str]]:
        result = machine.run(SMI, 2.0)
        lines = result.output.splitlines() if result and not result.code else []
        rows = [[cell.strip() for cell in line.split(",")] for line in lines]
        return [row for row in rows if len(row) == 3 and re.fullmatch(r"\d+\.\d+", row[1])]

    return machine.once("smi", ask)


def gpus(machine: Machine) -> list[Gpu]:
    """The GPUs of the machine, whatever CUDA_VISIBLE_DEVICES says."""
    return [Gpu(row[0], tuple(int(n) for n in row[1].split("."))) for row in smi(machine)]


def kernel_driver(machine: Machine) -> str:
    """The version of the driver's module in the kernel; empty if none is loaded."""
    text = machine.read("/proc/driver/nvidia/version") or ""
    match = re.search(r"^NVRM version:.*?\s(\d{3,}\.\d+(?:\.\d+)?)\s", text, re.MULTILINE)
    return match[1] if match else ""


def driver(machine: Machine) -> str:
    """The version of the NVIDIA driver; empty if there is none."""
    rows = [] if kernel_driver(machine) else smi(machine)
    return kernel_driver(machine) or (rows[0][2] if rows else "")
