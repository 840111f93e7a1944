"""Which PyTorch and Triton are installed, and whether they fit each other and the GPU."""

from __future__ import annotations

import posixpath
from typing import Iterator

from kb_probes.facts import has_gpu, major, requirement, torch, visible, wheel_index

from kbtools.doctor.hardware import driver, gpus
from kbtools.doctor.machine import Machine
from kbtools.doctor.probe import RISK, Finding, probe
from kbtools.doctor.ranges import release, within


@probe(
    "cpu-build",
    "KB0046",
    "PyTorch is a build without CUDA, and this machine has an NVIDIA GPU.",
    "PyTorch 是不带 CUDA 的构建，而这台机器有 NVIDIA GPU。",
)
def cpu_build(machine: Machine) -> Iterator[Finding]:
    """The commonest reason why a GPU is not used: nothing fails, it is only slow."""
    build = torch(machine)
    if build and not build.cuda and not build.accelerator and has_gpu(machine):
        yield Finding(
            f"{build.folder}/version.py",
            f"torch {build.version}, cuda = None",
            ("a build with CUDA", "带 CUDA 的构建"),
            "pip uninstall -y torch torchvision torchaudio\n"
            f"pip install torch --index-url {wheel_index(machine)}",
        )


@probe(
    "no-code-for-gpu",
    "KB0022",
    "This PyTorch has no code for the GPU of this machine.",
    "这个 PyTorch 里没有这台机器 GPU 的代码。",
)
def no_code_for_gpu(machine: Machine) -> Iterator[Finding]:
    """Machine code of the same major version and no later minor one, or older PTX."""
    build = torch(machine)
    if not build or not build.targets:
        return
    for gpu in dict.fromkeys(gpus(machine)):
        if not any(runs(target, gpu.capability) for target in build.targets):
            name = "sm_" + "".join(map(str, gpu.capability))
            yield Finding(
                f"torch {build.version}",
                " ".join(build.targets),
                f"{name} ({gpu.name})",
                "pip uninstall -y torch torchvision torchaudio\n"
                f"pip install torch --index-url {wheel_index(machine)}",
            )


def runs(target: str, capability: "tuple[int, ...]") -> bool:
    """Whether code for `sm_86` or `compute_80` runs on a GPU."""
    kind, _, name = target.partition("_")
    number = name.rstrip("af")
    own = (int(number[:-1]), int(number[-1]))
    if name.endswith("a"):
        return own == capability
    if kind == "compute" and not name.endswith("f"):
        return own <= capability
    return own[0] == capability[0] and own <= capability


@probe(
    "driver-too-old",
    "KB0096",
    "The driver is older than the CUDA that PyTorch is built for.",
    "驱动比 PyTorch 所用的 CUDA 旧。",
)
def driver_too_old(machine: Machine) -> Iterator[Finding]:
    """Within a major version any driver of that version does (the table in KB0096)."""
    build, installed = torch(machine), driver(machine)
    least = {13: 580, 12: 525, 11: 450}.get(major(build.cuda) if build else -1)
    compat = "/compat" in machine.environment.get("LD_LIBRARY_PATH", "")
    if build and installed and least and release(installed) < (least,) and not compat:
        yield Finding(
            "/proc/driver/nvidia/version",
            f"driver {installed}, torch {build.version} (CUDA {build.cuda})",
            (f"driver {least} or newer", f"驱动 {least} 或更新"),
            "pip uninstall -y torch torchvision torchaudio\n"
            f"pip install torch --index-url {wheel_index(machine)}",
        )


@probe(
    "hidden-gpus",
    "KB0046",
    "CUDA_VISIBLE_DEVICES hides the GPUs from every program that is started here.",
    "CUDA_VISIBLE_DEVICES 让这里启动的所有程序都看不到 GPU。",
    level=RISK,
    when=("any use of a GPU", "任何 GPU 操作"),
)
def hidden_gpus(machine: Machine) -> Iterator[Finding]:
    """CUDA stops reading the list at the first entry that names no GPU."""
    value, count = visible(machine), len(gpus(machine))
    if value is None or not count:
        return
    first = value.split(",")[0].strip()
    is_number = first.lstrip("-").isdigit()
    if not first or (is_number and not 0 <= int(first) < count) or first == "NoDevFiles":
        yield Finding(
            f"CUDA_VISIBLE_DEVICES={value!r}",
            (f"no GPU of {count}", f"{count} 个 GPU 中一个也不可见"),
            (f"numbers from 0 to {count - 1}", f"0 到 {count - 1} 的编号"),
            "unset CUDA_VISIBLE_DEVICES",
        )


@probe(
    "triton-pin",
    "KB0061",
    "Triton is not the one that this PyTorch demands.",
    "Triton 不是这个 PyTorch 所要求的版本。",
    level=RISK,
    when="torch.compile",
)
def triton_pin(machine: Machine) -> Iterator[Finding]:
    """What PyTorch demands stands in its own metadata."""
    distribution, installed = machine.distribution("torch"), machine.version("triton")
    wanted = requirement(distribution, "triton")
    if not distribution or not wanted or not installed or within(installed, wanted) is not False:
        return
    # KB0061: measured to fail
    fails = bool(
        (within(distribution.version, ">=2.5,<2.9") and within(installed, ">=3.5"))
        or (within(distribution.version, ">=2.6,<2.7") and within(installed, ">=3.3"))
    )
    yield Finding(
        f"torch {distribution.version}",
        f"triton {installed}",
        f"triton{wanted}",
        f'pip install "triton{wanted}"',
        "fault" if fails else "risk",
    )


@probe(
    "triton-missing",
    "KB0078",
    "This PyTorch demands Triton, and it is not installed.",
    "这个 PyTorch 需要 Triton，但没有安装。",
    when="torch.compile",
)
def triton_missing(machine: Machine) -> Iterator[Finding]:
    """After `pip install --no-deps`, or in an image that was made smaller by hand."""
    distribution = machine.distribution("torch")
    for name in ("triton", "pytorch-triton"):
        wanted = requirement(distribution, name)
        if distribution and wanted is not None and not machine.folder_of("triton"):
            yield Finding(
                distribution.metadata,
                ("no package triton", "没有 triton 包"),
                f"{name}{wanted}",
                f'pip install "{name}{wanted}"',
            )


@probe(
    "triton-shadowed",
    "KB0078",
    "A file of yours has the name of a package and would be imported in its place.",
    "你的一个文件与某个包同名，导入时会取代那个包。",
    level=RISK,
    when=("a script in this folder", "此文件夹中的脚本"),
)
def triton_shadowed(machine: Machine) -> Iterator[Finding]:
    """Python looks in the folder of the script first."""
    folder = machine.environment.get("PWD", "")
    for name in ("triton", "torch", "numpy"):
        file = posixpath.join(folder, f"{name}.py")
        if folder and machine.distribution(name) and machine.is_file(file):
            yield Finding(
                file, f"{name}.py", ("another name", "另一个名字"), f"mv {name}.py my_{name}.py"
            )


@probe(
    "torch-twice",
    "KB0053",
    "Two installations of PyTorch lie over each other or on one path.",
    "两份 PyTorch 安装相互重叠，或同在一条搜索路径上。",
)
def torch_twice(machine: Machine) -> Iterator[Finding]:
    """A half-finished upgrade, or a `--user` installation in front of the environment's."""
    several = machine.distributions.get("torch", [])
    versions = {distribution.version for distribution in several}
    if len(versions) > 1:
        yield Finding(
            "\n    ".join(distribution.metadata for distribution in several),
            ", ".join(f"torch {distribution.version}" for distribution in several),
            ("one of them", "只留一份"),
            "pip uninstall -y torch   # until none is left; then install it again",
        )


@probe(
    "torch-half-replaced",
    "KB0053",
    "The files of PyTorch are not of the version that is said to be installed.",
    "PyTorch 的文件与所记录的安装版本不一致。",
)
def torch_half_replaced(machine: Machine) -> Iterator[Finding]:
    """An installation that was interrupted, or another tool that wrote over it."""
    build, distribution = torch(machine), machine.distribution("torch")
    if not build or not distribution or len(machine.distributions["torch"]) > 1:
        return
    version = distribution.version.partition("+")[0]
    same_place = posixpath.dirname(build.folder) == distribution.folder
    if same_place and release(build.version) != release(distribution.version):
        yield Finding(
            f"{build.folder}/version.py",
            f"torch {build.version}",
            f"torch {distribution.version} ({posixpath.basename(distribution.metadata)})",
            f"pip install --force-reinstall --no-deps torch=={version}",
        )


@probe(
    "interpreter-numpy-2",
    "KB0080",
    "Triton's interpreter of this release stores nothing with NumPy 2.",
    "这个版本的 Triton 解释器与 NumPy 2 一起使用时什么也不写入。",
)
def interpreter_numpy_2(machine: Machine) -> Iterator[Finding]:
    """Only where the variable is set: the kernels that are compiled are not concerned."""
    triton, numpy = machine.version("triton"), machine.version("numpy")
    if machine.environment.get("TRITON_INTERPRET") != "1" or not triton or not numpy:
        return
    if within(triton, "<3.2") and within(numpy, ">=2.0"):
        yield Finding(
            "TRITON_INTERPRET=1",
            f"triton {triton}, numpy {numpy}",
            "numpy<2",
            'pip install "numpy<2"',
        )
