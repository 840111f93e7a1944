"""Which device file belongs to which GPU, so that a snippet's sandbox shows only its own.

A program that starts CUDA opens every GPU that it can see, also those that CUDA_VISIBLE_DEVICES
leaves out, and the driver takes them one after another. On a host with four H200s `cuInit` took
0.31 s with all four and 0.11 s with one (`benchmarks/contexts.py`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import msgspec

DRIVER = Path("/proc/driver/nvidia/gpus")
"""A folder for each GPU, named for its PCI address; the driver's README, "The /proc interface"."""


class GpuDevice(msgspec.Struct, frozen=True):
    """A GPU and its device file."""

    uuid: str
    file: str
    """As in `/dev/nvidia0`."""


def gpu_devices(driver: Path = DRIVER) -> list[GpuDevice]:
    """All GPUs of this machine in the order of their PCI addresses, as `nvidia-smi` numbers them.

    Args:
        driver: The driver's folder.
    """
    devices = []
    for path in sorted(driver.glob("*/information")):
        text = path.read_text("utf-8", "replace")
        fields = dict(re.findall(r"^([^:\n]+):\s*(.*?)\s*$", text, re.MULTILINE))
        minor = fields.get("Device Minor", "")
        if minor.isdigit():
            devices.append(GpuDevice(fields.get("GPU UUID", ""), f"/dev/nvidia{minor}"))
    return devices


def files_of_others(
    devices: Sequence[GpuDevice], names: Sequence[str], gpus: Sequence[int]
) -> list[str]:
    """The device files of the GPUs that a snippet does not have; none if that is not certain.

    Args:
        devices: All GPUs of the machine, as `gpu_devices` lists them.
        names: What CUDA_VISIBLE_DEVICES calls those that kbtools may use: numbers or UUIDs.
        gpus: The indices in `names` of the snippet's own.
    """
    own = {device.file for gpu in gpus for device in _named(devices, names[gpu].strip())}
    if not own or len(own) != len(gpus):  # a part of a GPU, or a machine with another driver
        return []
    return [device.file for device in devices if device.file not in own]


def _named(devices: Sequence[GpuDevice], name: str) -> list[GpuDevice]:
    """The GPU with this number or this beginning of a UUID, if there is exactly one."""
    if name.isdigit():
        return list(devices[int(name) : int(name) + 1])
    matching = [device for device in devices if name and device.uuid.startswith(name)]
    return matching if len(matching) == 1 else []
