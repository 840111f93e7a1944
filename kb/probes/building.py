"""What a build of CUDA code, or Triton's own, would meet: toolkit, compilers, headers."""

from __future__ import annotations

import posixpath
import re
from typing import Iterator, Optional, Tuple

from kb_probes.facts import has_gpu, major, torch

from kbtools.doctor.hardware import gpus
from kbtools.doctor.loader import cache_of
from kbtools.doctor.machine import Machine
from kbtools.doctor.probe import RISK, Finding, probe
from kbtools.doctor.ranges import release, within

BUILD = ("building an extension", "构建扩展")
TRITON = ("Triton, torch.compile", "Triton、torch.compile")
COMPILE_LATE = ("deepspeed", "flashinfer-python")
"""Packages that start ninja when a kernel is first used."""


def toolkit(machine: Machine) -> str:
    """The folder that PyTorch would take for the CUDA toolkit; empty if there is none."""
    for name in ("CUDA_HOME", "CUDA_PATH"):
        if machine.environment.get(name):
            return machine.environment[name]
    nvcc = machine.which("nvcc")
    if nvcc:
        return posixpath.dirname(posixpath.dirname(nvcc))
    return "/usr/local/cuda" if machine.is_folder("/usr/local/cuda") else ""


def nvcc_version(machine: Machine) -> str:
    """The release of the toolkit's nvcc, as in `12.8`; empty if there is none."""

    def ask() -> str:
        path = posixpath.join(toolkit(machine), "bin/nvcc")
        result = machine.run([machine.path(path), "--version"]) if machine.is_file(path) else None
        match = re.search(r"release (\d+\.\d+)", result.output) if result else None
        return match[1] if match else ""

    return machine.once("nvcc", ask)


def compiler(machine: Machine) -> Optional[str]:
    """The C compiler that Triton would take: $CC, gcc or clang."""
    names = [machine.environment.get("CC", "").split(" ")[0], "gcc", "clang"]
    return next((name for name in names if name and machine.which(name)), None)


def gcc_version(machine: Machine) -> Tuple[int, ...]:
    """The version of the host compiler of nvcc, if it is gcc."""
    flags = f"{machine.environment.get('NVCC_PREPEND_FLAGS', '')} "
    named = re.search(r"(?:-ccbin|--compiler-bindir)[ =](\S+)", flags)
    names = [named[1] if named else "", machine.environment.get("CC", ""), "gcc"]
    name = next((name for name in names if name and machine.which(name.split(" ")[0])), "")
    result = (
        machine.run([name.split(" ")[0], "-dumpfullversion"])
        if "gcc" in name or "g++" in name
        else None
    )
    return release(result.output) if result and not result.code else ()


@probe(
    "cuda-home-leads-nowhere",
    "KB0054",
    "CUDA_HOME names a folder without a compiler.",
    "CUDA_HOME 指向的文件夹里没有编译器。",
    level=RISK,
    when=BUILD,
)
def cuda_home_leads_nowhere(machine: Machine) -> Iterator[Finding]:
    """PyTorch does not look elsewhere once the variable is set."""
    for name in ("CUDA_HOME", "CUDA_PATH"):
        value = machine.environment.get(name)
        if value:
            if not machine.is_file(posixpath.join(value, "bin/nvcc")):
                yield Finding(
                    f"{name}={value}",
                    (f"no {value}/bin/nvcc", f"没有 {value}/bin/nvcc"),
                    (
                        f"a folder with bin/nvcc, or no {name}",
                        f"含 bin/nvcc 的文件夹，或不设 {name}",
                    ),
                    f"ls -d /usr/local/cuda-*/bin/nvcc; unset {name}",
                )
            return


@probe(
    "toolkit-of-another-cuda",
    "KB0055",
    "The CUDA toolkit is of another major version than the CUDA of PyTorch.",
    "CUDA toolkit 与 PyTorch 的 CUDA 主版本不同。",
    level=RISK,
    when=BUILD,
)
def toolkit_of_another_cuda(machine: Machine) -> Iterator[Finding]:
    """A minor difference is only a warning."""
    build, nvcc = torch(machine), nvcc_version(machine)
    if build and build.cuda and nvcc and major(nvcc) != major(build.cuda):
        yield Finding(
            posixpath.join(toolkit(machine), "bin/nvcc"),
            f"nvcc {nvcc}",
            f"CUDA {major(build.cuda)}.x (torch {build.version})",
            f"ls -d /usr/local/cuda-*\nexport CUDA_HOME=/usr/local/cuda-{build.cuda}",
        )


@probe(
    "gcc-too-new-for-nvcc",
    "KB0076",
    "The host compiler is newer than this nvcc admits.",
    "主机编译器比这个 nvcc 所允许的新。",
    level=RISK,
    when=BUILD,
)
def gcc_too_new(machine: Machine) -> Iterator[Finding]:
    """The bound stands in a header of the toolkit."""
    header = posixpath.join(toolkit(machine), "include/crt/host_config.h")
    bound = re.search(r"__GNUC__ > (\d+)", machine.read(header) or "")
    gcc = gcc_version(machine) if bound else ()
    if bound and gcc and gcc[0] > int(bound[1]):
        yield Finding(
            header,
            "gcc " + ".".join(map(str, gcc)),
            (f"gcc {bound[1]} or older", f"gcc {bound[1]} 或更旧"),
            f"export NVCC_PREPEND_FLAGS='-ccbin g++-{bound[1]}'",
        )


@probe(
    "glibc-too-new-for-cuda",
    "KB0117",
    "The headers of this glibc and those of this CUDA contradict each other.",
    "这个 glibc 的头文件与这个 CUDA 的头文件相互矛盾。",
    level=RISK,
    when=BUILD,
)
def glibc_too_new(machine: Machine) -> Iterator[Finding]:
    """Version 2.41 needs CUDA 13.0, 2.42 needs 13.2 (reported, KB0117)."""
    libc, nvcc = release(machine.interpreter.libc), release(nvcc_version(machine))
    least = (13, 2) if libc >= (2, 42) else (13,) if libc >= (2, 41) else ()
    if nvcc and least and nvcc < least:
        yield Finding(
            posixpath.join(toolkit(machine), "include/crt/math_functions.h"),
            f"glibc {machine.interpreter.libc}, CUDA {nvcc_version(machine)}",
            f"CUDA {'.'.join(map(str, least))}",
            "ls -d /usr/local/cuda-13*",
        )


@probe(
    "nvcc-without-this-gpu",
    "KB0023",
    "This nvcc cannot compile for the GPU of this machine.",
    "这个 nvcc 无法为这台机器的 GPU 编译。",
    level=RISK,
    when=BUILD,
)
def nvcc_without_this_gpu(machine: Machine) -> Iterator[Finding]:
    """It lists the architectures itself."""
    path = posixpath.join(toolkit(machine), "bin/nvcc")
    if not gpus(machine) or not machine.is_file(path):
        return
    result = machine.run([machine.path(path), "--list-gpu-arch"])
    listed = re.findall(r"compute_(\d+)", result.output) if result else []
    for gpu in dict.fromkeys(gpus(machine)):
        number = "".join(map(str, gpu.capability))
        if listed and number not in listed:
            yield Finding(
                path,
                " ".join(f"compute_{item}" for item in listed),
                f"compute_{number} ({gpu.name})",
                "ls -d /usr/local/cuda-*",
            )


@probe(
    "arch-list-without-this-gpu",
    "KB0022",
    "TORCH_CUDA_ARCH_LIST leaves out the GPU of this machine.",
    "TORCH_CUDA_ARCH_LIST 不包含这台机器的 GPU。",
    level=RISK,
    when=BUILD,
)
def arch_list_without_this_gpu(machine: Machine) -> Iterator[Finding]:
    """Machine code runs on the same major version and a later minor one; PTX on all newer."""
    value = machine.environment.get("TORCH_CUDA_ARCH_LIST", "")
    entries = re.findall(r"(\d+)\.(\d+)[af]?(\+PTX)?", value)
    for gpu in dict.fromkeys(gpus(machine)) if entries else ():
        fits = any(
            (int(a), int(b)) <= gpu.capability and (ptx or int(a) == gpu.capability[0])
            for a, b, ptx in entries
        )
        if not fits:
            name = ".".join(map(str, gpu.capability))
            yield Finding(
                f"TORCH_CUDA_ARCH_LIST={value}",
                value,
                f"{name} ({gpu.name})",
                f'export TORCH_CUDA_ARCH_LIST="{name}"',
            )


@probe(
    "no-c-compiler",
    "KB0058",
    "Triton compiles a C file at its first launch, and there is no C compiler.",
    "Triton 首次启动 kernel 时要编译一个 C 文件，而这里没有 C 编译器。",
    when=TRITON,
)
def no_c_compiler(machine: Machine) -> Iterator[Finding]:
    """Slim images have none. Only where there is a GPU to launch on."""
    if has_gpu(machine) and machine.distribution("triton") and not compiler(machine):
        yield Finding(
            "PATH=" + machine.environment.get("PATH", ""),
            ("no gcc, no clang, no $CC", "没有 gcc、clang，也没有 $CC"),
            ("a C compiler", "一个 C 编译器"),
            "apt-get install -y gcc libc6-dev",
        )


@probe(
    "no-python-headers",
    "KB0058",
    "Triton's C file includes Python.h, and this Python has none.",
    "Triton 的 C 文件包含 Python.h，而这个 Python 没有它。",
    when=TRITON,
)
def no_python_headers(machine: Machine) -> Iterator[Finding]:
    """The folder is that of the running interpreter; gcc adds those of CPATH."""
    interpreter = machine.interpreter
    folders = [interpreter.include, interpreter.platinclude]
    for name in ("CPATH", "C_INCLUDE_PATH"):
        folders += machine.environment.get(name, "").split(":")
    there = any(f and machine.is_file(posixpath.join(f, "Python.h")) for f in folders)
    if has_gpu(machine) and machine.distribution("triton") and not there:
        short = ".".join(interpreter.version.split(".")[:2])
        yield Finding(
            posixpath.join(interpreter.include, "Python.h"),
            ("no such file", "没有这个文件"),
            "Python.h",
            f"apt-get install -y python{short}-dev",
        )


@probe(
    "no-libcuda-to-link",
    "KB0058",
    "Triton up to 3.5 links with -lcuda, and the driver's library has no name without a number.",
    "Triton 3.5 及更早版本用 -lcuda 链接，而驱动库没有不带编号的名字。",
    when=TRITON,
)
def no_libcuda_to_link(machine: Machine) -> Iterator[Finding]:
    """Triton takes the folders that the loader's cache has for `libcuda.so.1`."""
    triton = machine.version("triton")
    cached = cache_of(machine).get("libcuda.so.1")
    if not triton or within(triton, "<3.6") is not True or not cached:
        return
    folders = [posixpath.dirname(cached), machine.environment.get("TRITON_LIBCUDA_PATH", "")]
    folders += machine.environment.get("LIBRARY_PATH", "").split(":")
    folders += [
        f"/usr/lib/{machine.interpreter.machine}-linux-gnu",
        "/usr/lib64",
        "/usr/lib",
        "/lib64",
    ]
    if not any(
        folder and machine.exists(posixpath.join(folder, "libcuda.so")) for folder in folders
    ):
        yield Finding(
            cached,
            ("no libcuda.so", "没有 libcuda.so"),
            "libcuda.so -> libcuda.so.1",
            f"ln -s libcuda.so.1 {posixpath.dirname(cached)}/libcuda.so && ldconfig",
        )


@probe(
    "no-cxx-for-inductor",
    "KB0071",
    "torch.compile for the CPU needs a C++ compiler, and there is none.",
    "面向 CPU 的 torch.compile 需要 C++ 编译器，而这里没有。",
    level=RISK,
    when=("torch.compile on the CPU", "在 CPU 上用 torch.compile"),
)
def no_cxx(machine: Machine) -> Iterator[Finding]:
    """Inductor asks for $CXX, then g++."""
    build = torch(machine)
    cxx = machine.environment.get("CXX", "").split(" ")[0]
    there = any(name and machine.which(name) for name in (cxx, "g++", "clang++"))
    if build and not build.cuda and not build.accelerator and not there:
        yield Finding(
            "PATH=" + machine.environment.get("PATH", ""),
            ("no g++", "没有 g++"),
            "g++",
            "apt-get install -y g++",
        )


@probe(
    "no-ninja",
    "KB0180",
    "A package that compiles at its first use needs ninja, and PATH has none.",
    "有的包在首次使用时才编译，需要 ninja，而 PATH 里没有。",
    level=RISK,
    when=(
        "the first use of DeepSpeed's or FlashInfer's kernels",
        "首次使用 DeepSpeed 或 FlashInfer 的 kernel",
    ),
)
def no_ninja(machine: Machine) -> Iterator[Finding]:
    """The package `ninja` alone does not help: its program must be found (KB0180)."""
    if any(map(machine.distribution, COMPILE_LATE)) and not machine.which("ninja"):
        folder = posixpath.dirname(machine.interpreter.executable)
        installed = machine.version("ninja")
        yield Finding(
            "PATH=" + machine.environment.get("PATH", ""),
            f"ninja {installed}" if installed else ("no ninja", "没有 ninja"),
            posixpath.join(folder, "ninja"),
            f'export PATH="{folder}:$PATH"'
            if installed
            else f"{machine.interpreter.executable} -m pip install ninja",
        )


@probe(
    "gcc-too-old-for-torch",
    "KB0077",
    "The headers of this PyTorch are C++20, and the compiler does not know it.",
    "这个 PyTorch 的头文件使用 C++20，而编译器不支持。",
    level=RISK,
    when=BUILD,
)
def gcc_too_old(machine: Machine) -> Iterator[Finding]:
    """`-std=c++20` is an option from gcc 10 on."""
    build = torch(machine)
    if build and within(build.version, ">=2.14"):
        gcc = gcc_version(machine)
        if gcc and gcc < (10,):
            name = ".".join(map(str, gcc))
            yield Finding(build.folder, f"gcc {name}", "gcc 10", "apt-get install -y g++-12")


@probe(
    "too-many-compilers",
    "KB0086",
    "MAX_JOBS compilers at once need more memory than there is.",
    "同时运行 MAX_JOBS 个编译器所需的内存超过现有内存。",
    level=RISK,
    when=BUILD,
)
def too_many_compilers(machine: Machine) -> Iterator[Finding]:
    """Kernels of templates take 3 to 5 GB for each compiler (KB0086); 2 GB is counted here."""
    jobs = machine.environment.get("MAX_JOBS", "")
    memory = memory_of(machine)
    if jobs.isdigit() and memory and int(jobs) * 2 * 10**9 > memory:
        fitting = max(1, memory // (5 * 10**9))
        yield Finding(
            f"MAX_JOBS={jobs}",
            f"{memory / 10**9:.0f} GB",
            f"MAX_JOBS={fitting}",
            f"export MAX_JOBS={fitting}",
        )


def memory_of(machine: Machine) -> int:
    """Bytes of memory that this process may use: the machine's, or the container's limit."""
    total = re.search(r"MemTotal:\s*(\d+) kB", machine.read("/proc/meminfo") or "")
    sizes = [int(total[1]) * 1024] if total else []
    for file in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        text = (machine.read(file) or "").strip()
        sizes += [int(text)] if text.isdigit() else []
    return min(sizes, default=0)
