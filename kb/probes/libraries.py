"""Which CUDA libraries a process would load, and whose they are."""

from __future__ import annotations

import posixpath
from typing import Dict, Iterator, List, Tuple

from kb_probes.facts import requirement, torch

from kbtools.doctor.installed import files_of
from kbtools.doctor.loader import VARIABLE, Loader, header_of, library_path, opened
from kbtools.doctor.machine import Machine
from kbtools.doctor.probe import RISK, Finding, probe
from kbtools.doctor.ranges import release, within

UNSET = "unset LD_LIBRARY_PATH"
NCCL = "nvidia-nccl"
DRIVER = ("libcuda.so.1", "libnvidia-ml.so.1")
"""Libraries of the driver: a machine without a GPU has none."""


def process_of(machine: Machine) -> Loader:
    """What `import torch` loads, by the files of PyTorch."""

    def load() -> Loader:
        loader = Loader(machine)
        build = torch(machine)
        loader.load(machine.real(machine.interpreter.executable))
        if build:
            loader.load(f"{build.folder}/lib/libtorch_python.so")
        return loader

    return machine.once("process", load)


def wheel_libraries(machine: Machine) -> Dict[str, str]:
    """Name → path, of the libraries that wheels brought into folders `nvidia/…/lib`."""

    def look() -> Dict[str, str]:
        paths: Dict[str, str] = {}
        for entry in machine.interpreter.path:
            for package in machine.names(f"{entry}/nvidia"):
                folder = f"{entry}/nvidia/{package}/lib"
                for name in machine.names(folder):
                    if ".so" in name:
                        paths.setdefault(name, f"{folder}/{name}")
        return paths

    return machine.once("wheel libraries", look)


@probe(
    "nvjitlink-from-outside",
    "KB0059",
    "The loader takes an nvJitLink from LD_LIBRARY_PATH that lacks what cuSPARSE needs.",
    "加载器从 LD_LIBRARY_PATH 取到的 nvJitLink 缺少 cuSPARSE 需要的符号。",
)
def nvjitlink_from_outside(machine: Machine) -> Iterator[Finding]:
    """From 2.6 on PyTorch loads the right one first, by its path (KB0059)."""
    build = torch(machine)
    if not build or within(build.version, "<2.6") is not True:
        return
    for name, loaded in process_of(machine).loaded.items():
        if name.startswith("libnvJitLink.so") and loaded.by == VARIABLE:
            missing = missing_symbols(machine, loaded.requester, loaded.path, "__nvJitLink")
            if missing:
                yield Finding(
                    f"LD_LIBRARY_PATH: {loaded.path}",
                    missing[0],
                    wheel_libraries(machine).get(name, name),
                    UNSET,
                )


def missing_symbols(machine: Machine, user: str, library: str, prefix: str) -> List[str]:
    """The symbols with a prefix that one library needs and another does not have."""
    needs, has = opened(machine, user), opened(machine, library)
    try:
        if needs is None or has is None:
            return []
        names = [symbol.name for symbol in needs.undefined() if symbol.name.startswith(prefix)]
        return [name for name in names if has.defines(name) is False]
    finally:
        for file in (needs, has):
            if file:
                file.close()


@probe(
    "cudnn-parts-from-outside",
    "KB0091",
    "LD_LIBRARY_PATH has parts of another cuDNN, and cuDNN loads its parts from there first.",
    "LD_LIBRARY_PATH 中有另一个 cuDNN 的组件，而 cuDNN 会先从那里加载。",
)
def cudnn_parts_from_outside(machine: Machine) -> Iterator[Finding]:
    """The front loads its parts by name, and has a RUNPATH, which comes after the variable."""
    own = wheel_libraries(machine)
    for name, path in sorted(own.items()):
        header = header_of(machine, path) if name.startswith("libcudnn_") else None
        front = header_of(machine, own.get("libcudnn.so." + name.rpartition(".")[2], ""))
        if not header or (front and front.rpath and not front.runpath):
            continue
        for folder in library_path(machine):
            another = posixpath.join(folder, name)
            if machine.real(another) == machine.real(path):
                break  # the wheel's own folder comes first
            if machine.is_file(another):
                if machine.size(another) != machine.size(path):
                    yield Finding(f"LD_LIBRARY_PATH: {folder}", another, path, UNSET)
                    return
                break


@probe(
    "cublas-from-outside",
    "KB0038",
    "PyTorch would load a cuBLAS that is not the one of its wheels.",
    "PyTorch 会加载不属于自己 wheel 的 cuBLAS。",
)
def cublas_from_outside(machine: Machine) -> Iterator[Finding]:
    """Only where the wheels have one of the same name."""
    yield from from_outside(machine, ("libcublas.so", "libcublasLt.so"))


@probe(
    "cuda-library-from-outside",
    "KB0056",
    "PyTorch would load a CUDA library that is not the one of its wheels.",
    "PyTorch 会加载不属于自己 wheel 的 CUDA 库。",
)
def cuda_library_from_outside(machine: Machine) -> Iterator[Finding]:
    """NCCL, the run-time library, cuFFT and the others; cuBLAS has a probe of its own."""
    names = ("libnccl.so", "libcudart.so", "libcufft.so", "libcusparse.so", "libcudnn.so.")
    yield from from_outside(machine, (*names, "libcusolver.so", "libcurand.so", "libnvrtc.so"))


def from_outside(machine: Machine, names: Tuple[str, ...]) -> Iterator[Finding]:
    """Libraries that `LD_LIBRARY_PATH` puts in the place of the wheels'."""
    own = wheel_libraries(machine)
    for name, loaded in process_of(machine).loaded.items():
        wheel = own.get(name)
        if name.startswith(names) and wheel and loaded.by == VARIABLE:
            same = machine.real(loaded.path) == machine.real(wheel)
            if not same and machine.size(loaded.path) != machine.size(wheel):
                yield Finding(f"LD_LIBRARY_PATH: {loaded.path}", loaded.path, wheel, UNSET)


@probe(
    "torch-library-missing",
    "KB0056",
    "A library that PyTorch needs is nowhere where the loader looks.",
    "加载器在任何位置都找不到 PyTorch 所需的某个库。",
)
def torch_library_missing(machine: Machine) -> Iterator[Finding]:
    """PyTorch looks in all folders `nvidia/…/lib` itself where the loader fails."""
    own, absent = wheel_libraries(machine), {}
    for missing in process_of(machine).missing:
        cuda = missing.name.startswith(("libcu", "libnccl", "libnv"))
        if cuda and missing.name not in own and missing.name not in DRIVER:
            absent.setdefault(missing.name, missing.requester)
    if absent:
        names = " ".join(sorted(absent))
        yield Finding(
            next(iter(absent.values())),
            (f"not found: {names}", f"找不到：{names}"),
            names,
            "pip install --force-reinstall torch",
        )


@probe(
    "cuda-wheel-missing",
    "KB0056",
    "A package with a CUDA library that this PyTorch demands is not installed.",
    "这个 PyTorch 所要求的某个 CUDA 库的包没有安装。",
)
def cuda_wheel_missing(machine: Machine) -> Iterator[Finding]:
    """What PyTorch demands stands in its metadata; conda's demands nothing of the kind."""
    distribution = machine.distribution("torch")
    if not distribution or machine.interpreter.machine != "x86_64":
        return
    names = {line.partition("=")[0].strip() for line in distribution.requires}
    names = {
        name for name in names if name.startswith("nvidia-") and name.replace("-", "").isalnum()
    }
    absent = sorted(name for name in names if not machine.distribution(name))
    if absent:
        wanted = [f"{name}{requirement(distribution, name) or ''}" for name in absent]
        yield Finding(
            distribution.metadata,
            ("absent: " + ", ".join(absent), "缺少：" + "、".join(absent)),
            ", ".join(wanted),
            "pip install " + " ".join(wanted),
        )


@probe(
    "nvjitlink-older-than-cusparse",
    "KB0059",
    "nvJitLink is older than the cuSPARSE beside it, which needs its newer functions.",
    "nvJitLink 比旁边的 cuSPARSE 旧，而后者需要它的新函数。",
)
def nvjitlink_older(machine: Machine) -> Iterator[Finding]:
    """As it is when something pinned one of the two."""
    own = wheel_libraries(machine)
    for name, path in own.items():
        link = own.get("libnvJitLink.so." + name.rpartition(".")[2])
        if name.startswith("libcusparse.so.") and link:
            missing = missing_symbols(machine, path, link, "__nvJitLink")
            if missing:
                yield Finding(
                    link,
                    missing[0],
                    f"{missing[0]}, {path}",
                    "pip install --upgrade nvidia-nvjitlink-cu12",
                )


@probe(
    "cudnn-older-than-demanded",
    "KB0091",
    "cuDNN is older than the one that PyTorch was built with.",
    "cuDNN 比构建 PyTorch 时所用的旧。",
)
def cudnn_older(machine: Machine) -> Iterator[Finding]:
    """A newer one of the same major version is what people install on purpose."""
    names = ("nvidia-cudnn-cu12", "nvidia-cudnn-cu13", "nvidia-cudnn-cu11")
    yield from older_than_demanded(machine, names)


def older_than_demanded(machine: Machine, names: Tuple[str, ...]) -> Iterator[Finding]:
    """Packages that PyTorch pins, and that are older than the pin."""
    distribution = machine.distribution("torch")
    for name in names:
        wanted, installed = requirement(distribution, name), machine.version(name)
        is_pinned = wanted and installed and wanted.startswith("==")
        if is_pinned and release(installed) < release(wanted[2:]):
            yield Finding(
                name, f"{name} {installed}", f"{name}{wanted}", f'pip install "{name}{wanted}"'
            )


@probe(
    "cudnn-of-two-cudas",
    "KB0091",
    "Two packages brought the same files: one CUDA's libraries lie in the place of the other's.",
    "两个包带来了同名文件：一个 CUDA 版本的库占了另一个的位置。",
)
def two_owners(machine: Machine) -> Iterator[Finding]:
    """As `nvidia-cudnn-cu12` and `-cu13`, whose folder is one; NCCL has a probe of its own."""
    for stem, names in families(machine).items():
        if stem != NCCL:
            yield from shared_files(machine, names)


@probe(
    "nccl-of-two-cudas",
    "KB0129",
    "Two packages brought libnccl.so.2, and the one that was installed last is there.",
    "两个包都带来了 libnccl.so.2，留下的是最后安装的那个。",
)
def two_nccls(machine: Machine) -> Iterator[Finding]:
    """An older NCCL lacks functions that PyTorch needs at its import (KB0129)."""
    yield from shared_files(machine, families(machine).get(NCCL, []))


@probe(
    "nccl-older-than-demanded",
    "KB0129",
    "NCCL is older than the one that PyTorch was built with.",
    "NCCL 比构建 PyTorch 时所用的旧。",
)
def nccl_older(machine: Machine) -> Iterator[Finding]:
    """A newer one is what people install on purpose; an older one may lack a function (KB0129)."""
    yield from older_than_demanded(machine, ("nvidia-nccl-cu12", "nvidia-nccl-cu13"))


def families(machine: Machine) -> Dict[str, List[str]]:
    """Name of a library's packages without their CUDA, as in `nvidia-nccl` → those installed."""
    families: Dict[str, List[str]] = {}
    for name in machine.distributions:
        stem, _, cuda = name.rpartition("-cu")
        if name.startswith("nvidia-") and stem and cuda.isdigit():
            families.setdefault(stem, []).append(name)
    return families


def shared_files(machine: Machine, names: List[str]) -> Iterator[Finding]:
    """The first library that several packages brought.

    Removing one of them removes the files of both.
    """
    owners: Dict[str, List[str]] = {}
    for name in sorted(names) if len(names) > 1 else ():
        for path, _ in files_of(machine, machine.distributions[name][0]):
            if ".so" in posixpath.basename(path):
                owners.setdefault(path, []).append(name)
    shared = [(path, both) for path, both in owners.items() if len(both) > 1]
    for path, both in shared[:1]:
        demanded = [n for n in both if requirement(machine.distribution("torch"), n) is not None]
        keep = (demanded or both)[0]
        gone = " ".join(name for name in both if name != keep)
        yield Finding(
            path,
            " + ".join(both),
            keep,
            f"pip uninstall -y {gone}\npip install --force-reinstall --no-deps {keep}",
        )


@probe(
    "openmp-runtimes-share-little-tls",
    "KB0181",
    "Several packages bring libgomp, and an old glibc has little room for variables of threads.",
    "多个包各自带有 libgomp，而旧版 glibc 留给线程变量的空间很小。",
    level=RISK,
    when=("importing all of them in one process", "在同一进程中导入它们"),
)
def several_openmp_runtimes(machine: Machine) -> Iterator[Finding]:
    """On 64-bit Arm, glibc up to 2.31 gives the reserve away to whoever comes first."""
    libc = release(machine.interpreter.libc)
    if machine.interpreter.machine != "aarch64" or not libc or libc >= (2, 32):
        return
    folders = [
        posixpath.join(site, "torch/lib" if name == "torch" else name)
        for site in machine.interpreter.path
        for name in machine.names(site)
        if name.endswith(".libs") or name == "torch"
    ]
    copies = [
        posixpath.join(folder, library)
        for folder in folders
        for library in machine.names(folder)
        if library.startswith("libgomp")
    ]
    if len(copies) > 1:
        yield Finding(
            ", ".join(copies[:3]),
            f"{len(copies)} × libgomp, glibc {machine.interpreter.libc}",
            "glibc >= 2.32",
            "LD_PRELOAD=PATH-IN-THE-MESSAGE python train.py",
        )
