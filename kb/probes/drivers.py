"""The driver: its module in the kernel, its library, its devices."""

from __future__ import annotations

import posixpath
import re
from typing import Iterator

from kb_probes.facts import pci_gpus, torch
from kb_probes.libraries import process_of

from kbtools.doctor.hardware import gpus, kernel_driver
from kbtools.doctor.loader import Loaded, cache_of, library_path
from kbtools.doctor.machine import Machine, Unanswered
from kbtools.doctor.probe import RISK, Finding, probe
from kbtools.doctor.ranges import release

LIBRARY = "libcuda.so.1"
PERSISTENCE = (
    "nvidia-smi",
    "--query-gpu=index,persistence_mode,display_active",
    "--format=csv,noheader",
)


def driver_library(machine: Machine) -> "Loaded | None":
    """The driver's library that a process would load."""
    return process_of(machine).find(LIBRARY, machine.interpreter.executable)


@probe(
    "driver-library-of-another-version",
    "KB0096",
    "The driver's library is not of the version of its module in the kernel.",
    "驱动库与内核中驱动模块的版本不一致。",
)
def driver_library_of_another_version(machine: Machine) -> Iterator[Finding]:
    """After an update that waits for a reboot, or with a cuda-compat that the driver outgrew.

    A cuda-compat that is newer than the driver is meant so on data-centre GPUs, and not told.
    """
    module, loaded = kernel_driver(machine), driver_library(machine)
    if not module or not loaded:
        return
    real = machine.real(loaded.path)
    version = re.search(r"libcuda\.so\.(\d{3,}\.\d+(?:\.\d+)?)$", real)
    if not version or release(version[1]) == release(module):
        return
    is_compat = "compat" in real
    newer = release(version[1]) > release(module)
    if is_compat and newer and not any("GeForce" in gpu.name for gpu in gpus(machine)):
        return
    yield Finding(
        real,
        f"libcuda {version[1]}, /proc/driver/nvidia/version {module}",
        module,
        "export LD_LIBRARY_PATH=   # without the folder compat" if is_compat else "sudo reboot",
    )


@probe(
    "stub-driver",
    "KB0096",
    "The driver's library that would be loaded is the toolkit's stub, which only fails.",
    "将被加载的驱动库是 toolkit 的 stub，它只会报错。",
)
def stub_driver(machine: Machine) -> Iterator[Finding]:
    """It is there to link with."""
    loaded = driver_library(machine)
    if loaded and "/stubs/" in f"{machine.real(loaded.path)}/":
        yield Finding(
            f"LD_LIBRARY_PATH: {posixpath.dirname(loaded.path)}",
            loaded.path,
            ("the driver's own library", "驱动自己的库"),
            "unset LD_LIBRARY_PATH",
        )


@probe(
    "gpu-without-driver",
    "KB0046",
    "There is an NVIDIA GPU on the bus, and its driver is not loaded.",
    "总线上有 NVIDIA GPU，但驱动没有加载。",
)
def gpu_without_driver(machine: Machine) -> Iterator[Finding]:
    """A GPU that is given to a virtual machine belongs to vfio-pci, and is not told."""
    if (
        kernel_driver(machine)
        or machine.exists("/proc/driver/nvidia")
        or machine.exists("/dev/nvidia0")
    ):
        return
    base = "/sys/bus/pci/devices"
    free = [a for a in pci_gpus(machine) if not machine.names(f"{base}/{a}/driver")]
    build = torch(machine)
    if free and build and build.cuda:
        yield Finding(
            f"{base}/{free[0]}",
            ("no driver", "没有驱动"),
            "/proc/driver/nvidia/version",
            "lspci -k -d 10de:   # then install the driver, or modprobe nvidia",
        )


@probe(
    "no-uvm-device",
    "KB0096",
    "The GPUs are there, and the device of unified memory is not: CUDA cannot begin.",
    "GPU 设备在，但统一内存设备不在：CUDA 无法初始化。",
)
def no_uvm_device(machine: Machine) -> Iterator[Finding]:
    """In a container that was given the devices by hand.

    On a host `nvidia-modprobe` makes the device at the first use of CUDA.
    """
    makes = machine.which("nvidia-modprobe")
    if machine.exists("/dev/nvidia0") and not machine.exists("/dev/nvidia-uvm") and not makes:
        yield Finding(
            "/dev/nvidia-uvm",
            ("no such device", "没有这个设备"),
            "/dev/nvidia-uvm",
            "sudo modprobe nvidia_uvm   # in a container: --gpus all in place of --device",
        )


@probe(
    "device-not-permitted",
    "KB0046",
    "This user may not open the devices of the GPUs.",
    "当前用户无权打开 GPU 设备。",
)
def device_not_permitted(machine: Machine) -> Iterator[Finding]:
    """A scheduler or a group keeps them for others."""
    names = [n for n in machine.names("/dev") if re.fullmatch(r"nvidia(\d+|ctl|-uvm)", n)]
    closed = [f"/dev/{name}" for name in names if not machine.is_readable(f"/dev/{name}")]
    if closed and any(f"/dev/{name}" in closed for name in ("nvidiactl", "nvidia-uvm", "nvidia0")):
        yield Finding(
            ", ".join(closed), ("not permitted", "没有权限"), "rw", f"ls -l {' '.join(closed)}; id"
        )


@probe(
    "devices-taken-away",
    "KB0196",
    "This container may not open the devices of its GPUs any more.",
    "这个容器已无权打开自己的 GPU 设备。",
)
def devices_taken_away(machine: Machine) -> Iterator[Finding]:
    """A device cgroup refuses what the permissions of the file allow."""
    control = "/dev/nvidiactl"
    is_permitted = machine.exists(control) and machine.is_readable(control)
    if is_permitted and machine.refusal(control) == "EPERM":
        yield Finding(
            control,
            "EPERM",
            ("can be opened", "可以打开"),
            "docker restart NAME   # for good: --runtime=nvidia in place of --gpus",
        )


@probe(
    "no-driver-library",
    "KB0046",
    "The kernel has the driver, and no process finds its library.",
    "内核里有驱动，但进程找不到它的库。",
)
def no_driver_library(machine: Machine) -> Iterator[Finding]:
    """In a container without `--gpus all`, or with the capability `utility` alone."""
    if machine.exists("/dev/nvidia0") and not cache_of(machine):
        raise Unanswered("ldconfig did not answer")
    if machine.exists("/dev/nvidia0") and kernel_driver(machine) and not driver_library(machine):
        yield Finding(
            LIBRARY,
            ("not found", "找不到"),
            "libcuda.so.1",
            "docker run --gpus all -e NVIDIA_DRIVER_CAPABILITIES=compute,utility …",
        )


@probe(
    "fabric-manager-not-running",
    "KB0096",
    "This machine has NVSwitch, and its fabric manager does not run.",
    "这台机器有 NVSwitch，但 fabric manager 没有运行。",
)
def fabric_manager(machine: Machine) -> Iterator[Finding]:
    """Only on a host: the processes of a host are not seen from a container."""
    switches = [n for n in machine.names("/dev") if n.startswith("nvidia-nvswitch")]
    first = (machine.read("/proc/1/comm") or "").strip()
    if not switches or first not in ("systemd", "init"):
        return
    programs = [
        machine.read(f"/proc/{n}/comm") or "" for n in machine.names("/proc") if n.isdigit()
    ]
    if not any(program.startswith("nv-fabricmanage") for program in programs):
        yield Finding(
            "/dev/nvidia-nvswitch*",
            ("no process nv-fabricmanager", "没有进程 nv-fabricmanager"),
            "nv-fabricmanager",
            "sudo systemctl enable --now nvidia-fabricmanager",
        )


@probe(
    "gpu-lost",
    "KB0046",
    "The kernel's log says that a GPU has fallen off the bus.",
    "内核日志显示某个 GPU 已从总线掉线。",
    level=RISK,
    when=("any use of a GPU", "任何 GPU 操作"),
)
def gpu_lost(machine: Machine) -> Iterator[Finding]:
    """Xid 79, where the log may be read; where it may not, nothing is known of it."""
    if not (kernel_driver(machine) or gpus(machine)):
        return
    text = kernel_log(machine)
    if text is None:
        raise Unanswered(
            "the kernel's log is not readable: dmesg, journalctl -k, /var/log/kern.log"
        )
    lines = re.findall(r"NVRM: Xid \([^)]*\): 79,.*", text)
    if lines:
        yield Finding(
            "dmesg", lines[-1][:160], ("no Xid 79", "没有 Xid 79"), "nvidia-smi -L; sudo reboot"
        )


def kernel_log(machine: Machine) -> "str | None":
    """What the kernel wrote since it was started; None where this user may not read it.

    A log without a line counts as not readable: the kernel writes many at its start.
    """
    for file in ("/var/log/kern.log", "/var/log/dmesg"):
        text = machine.read(file, 1 << 22)
        if text:
            return text
    for command in (["dmesg"], ["journalctl", "--dmesg", "--boot", "--quiet", "--no-pager"]):
        result = machine.run(command, 0.5)
        if result and not result.code and result.output.strip():
            return result.output
    return None


@probe(
    "persistence-off",
    "KBN0240",
    "The driver shuts a GPU down whenever no program uses it: persistence mode is off.",
    "没有程序使用时驱动会关闭 GPU：persistence mode 没有开启。",
    level=RISK,
    when=("the start of every program", "每个程序启动时"),
)
def persistence_off(machine: Machine) -> Iterator[Finding]:
    """Only for GPUs without a display, on a host: a display keeps its GPU initialised."""
    if not gpus(machine) or (machine.read("/proc/1/comm") or "").strip() not in ("systemd", "init"):
        return
    result = machine.run(PERSISTENCE)
    rows = [line.split(", ") for line in (result.output if result else "").splitlines()]
    off = [row[0] for row in rows if row[1:] == ["Disabled", "Disabled"]]
    if off:
        yield Finding(
            f"GPU {', '.join(off)}",
            "persistence_mode Disabled",
            "Enabled",
            "sudo nvidia-smi -pm 1   # until the next boot; for good: start nvidia-persistenced"
            " without --no-persistence-mode",
        )


@probe(
    "compat-on-geforce",
    "KB0096",
    "A cuda-compat library is on the path, and this GPU is not one that it is made for.",
    "路径上有 cuda-compat 库，但它不支持这个 GPU。",
)
def compat_on_geforce(machine: Machine) -> Iterator[Finding]:
    """cuda-compat is for data-centre GPUs; on a GeForce CUDA answers 804."""
    folders = [f for f in library_path(machine) if posixpath.basename(f.rstrip("/")) == "compat"]
    consumer = [gpu.name for gpu in gpus(machine) if "GeForce" in gpu.name]
    for folder in folders if consumer else ():
        if machine.is_file(posixpath.join(folder, LIBRARY)):
            yield Finding(
                f"LD_LIBRARY_PATH: {folder}",
                consumer[0],
                ("a data-centre GPU", "数据中心 GPU"),
                "export LD_LIBRARY_PATH=   # without the folder compat",
            )
