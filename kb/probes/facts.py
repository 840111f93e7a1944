"""What several probes ask: the GPUs, PyTorch as it was built."""

from __future__ import annotations

import re
from typing import List, NamedTuple, Optional, Tuple

from kbtools.doctor.hardware import driver, gpus, kernel_driver
from kbtools.doctor.installed import Distribution
from kbtools.doctor.loader import opened
from kbtools.doctor.machine import Machine
from kbtools.doctor.ranges import release

INDEX = "https://download.pytorch.org/whl"


class Torch(NamedTuple):
    """PyTorch as its files describe it; it is not imported."""

    version: str
    cuda: str
    """The CUDA that it is built for, as in `12.8`; empty for a build without."""
    accelerator: str
    """`hip` or `xpu` for a build for other accelerators."""
    folder: str
    targets: Tuple[str, ...]
    """What its kernels are compiled for, as in `sm_90` and `compute_90`; empty if unknown."""


def pci_gpus(machine: Machine) -> List[str]:
    """The addresses of NVIDIA display controllers on the PCI bus, driver or not."""
    base = "/sys/bus/pci/devices"
    return [
        address
        for address in machine.names(base)
        if (machine.read(f"{base}/{address}/vendor") or "").strip() == "0x10de"
        and (machine.read(f"{base}/{address}/class") or "").startswith("0x03")
    ]


def has_gpu(machine: Machine) -> bool:
    """Whether an NVIDIA GPU is there for this machine."""
    return bool(kernel_driver(machine) or gpus(machine) or machine.exists("/dev/nvidia0"))


def torch(machine: Machine) -> Optional[Torch]:
    """The PyTorch that an import would find; None if there is none."""
    return machine.once("torch", lambda: _torch(machine))


def _torch(machine: Machine) -> Optional[Torch]:
    folder = machine.folder_of("torch")
    text = machine.read(f"{folder}/version.py") if folder else None
    if not folder or not text:
        return None

    def value(name: str) -> str:
        match = re.search(rf"^{name}\b[^=\n]*=\s*['\"]([^'\"]+)['\"]", text or "", re.MULTILINE)
        return match[1] if match else ""

    version = value("__version__")
    accelerator = next((name for name in ("hip", "xpu") if value(name)), "")
    targets = _targets(machine, folder) if value("cuda") else ()
    return Torch(version, value("cuda"), accelerator, folder, targets) if version else None


def _targets(machine: Machine, folder: str) -> Tuple[str, ...]:
    """`torch.cuda.get_arch_list()`: a constant in this library, so nothing has to be imported."""
    library = opened(machine, f"{folder}/lib/libtorch_python.so")
    if library is None:
        return ()
    try:
        targets = library.search(rb"(?:sm|compute)_\d+[af]?(?: (?:sm|compute)_\d+[af]?)+")
    finally:
        library.close()
    return tuple(targets.decode("ascii").split())


def major(version: str) -> int:
    """The first number of a version; -1 for none."""
    numbers = re.match(r"\D*(\d+)", version)
    return int(numbers[1]) if numbers else -1


def requirement(distribution: Optional[Distribution], name: str) -> Optional[str]:
    """The range in which a distribution wants another, on Linux and without extras; None for none.

    `==3.4.0` for `triton==3.4.0; platform_system == "Linux"`.
    """
    for line in distribution.requires if distribution else ():
        wanted, _, condition = line.partition(";")
        match = re.fullmatch(r"\s*([\w.-]+)\s*(?:\[[^]]*\])?\s*\(?([^)]*)\)?\s*", wanted)
        if not match or re.sub(r"[-_.]+", "-", match[1]).lower() != name:
            continue
        if "extra ==" in condition or re.search(
            r"(Windows|Darwin|win32|darwin|aarch64)\"", condition
        ):
            continue
        return match[2].strip()
    return None


def wheel_index(machine: Machine) -> str:
    """The index with a PyTorch for CUDA that the driver runs: 13 needs 580 or newer (KB0096)."""
    newest = "cu130" if release(driver(machine)) >= (580,) else "cu126"
    if newest == "cu126" and any(gpu.capability >= (10, 0) for gpu in gpus(machine)):
        newest = "cu128"  # the first for Blackwell
    return f"{INDEX}/{newest}"


def visible(machine: Machine) -> Optional[str]:
    """CUDA_VISIBLE_DEVICES; None if it is not set."""
    return machine.environment.get("CUDA_VISIBLE_DEVICES")
