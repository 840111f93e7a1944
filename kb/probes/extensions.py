"""Packages with compiled code for PyTorch: are they for the one that is installed?"""

from __future__ import annotations

import re
from typing import Dict, Iterator, List, Optional, Tuple

from kb_probes.facts import major, requirement, torch
from kb_probes.libraries import process_of, wheel_libraries

from kbtools.doctor.elf import Library
from kbtools.doctor.installed import Distribution, files_of
from kbtools.doctor.loader import Loader, header_of, opened
from kbtools.doctor.machine import Machine
from kbtools.doctor.probe import Finding, Text, probe
from kbtools.doctor.ranges import within

OWN = {"torchvision": "KB0075", "torchaudio": "KB0075", "xformers": "KB0092"}
"""Packages that have an article of their own."""
PREFIXES = ("_ZN3c10", "_ZNK3c10", "_ZN2at", "_ZNK2at", "_ZN5torch", "_ZNK5torch", "aoti_torch_")
"""How names of PyTorch's functions begin."""
REBUILD = "pip install --no-build-isolation --no-cache-dir --force-reinstall --no-deps"


def extensions(machine: Machine) -> Dict[str, List[str]]:
    """Distribution → its libraries that need PyTorch's."""

    def look() -> Dict[str, List[str]]:
        result: Dict[str, List[str]] = {}
        for name, several in machine.distributions.items():
            if name == "torch" or requirement(several[0], "torch") is None:
                continue
            for path, _ in files_of(machine, several[0]):
                header = header_of(machine, path) if path.endswith(".so") else None
                if header and any(re.match(r"lib(torch|c10)", n) for n in header.needed):
                    result.setdefault(name, []).append(path)
        return result

    return machine.once("extensions", look)


def undefined_in(machine: Machine, path: str, libraries: List[Library]) -> Optional[str]:
    """The first function of PyTorch that a library needs and none of PyTorch's has."""
    user = opened(machine, path)
    if user is None:
        return None
    try:
        for symbol in user.undefined():
            if symbol.weak or not symbol.name.startswith(PREFIXES):
                continue
            if all(library.defines(symbol.name) is False for library in libraries):
                return symbol.name
        return None
    finally:
        user.close()


def foreign(machine: Machine, names: Tuple[str, ...], rest: bool = False) -> Iterator[Finding]:
    """Extensions that need a function which this PyTorch does not have.

    Args:
        machine: where they are.
        names: of distributions.
        rest: all but these.
    """
    build = torch(machine)
    if not build:
        return
    own = [f"{build.folder}/lib/{n}" for n in machine.names(f"{build.folder}/lib") if ".so" in n]
    libraries = [library for library in (opened(machine, path) for path in own) if library]
    try:
        for name, paths in extensions(machine).items():
            if (name in names) == rest or not libraries:
                continue
            for path in paths:
                folder = path.rpartition("/")[0]
                beside = [
                    opened(machine, f"{folder}/{n}") for n in machine.names(folder) if ".so" in n
                ]
                near = [library for library in beside if library]
                symbol = undefined_in(machine, path, [*libraries, *near])
                for library in near:
                    library.close()
                if symbol:
                    yield Finding(
                        path,
                        f"{name} {machine.version(name)}: {symbol}",
                        (f"a build for torch {build.version}", f"为 torch {build.version} 构建"),
                        f"{REBUILD} {name}",
                    )
                    break
    finally:
        for library in libraries:
            library.close()


@probe(
    "extension-of-another-torch",
    "KB0053",
    "A compiled package needs a function that this PyTorch does not have.",
    "某个编译好的包需要这个 PyTorch 里没有的函数。",
)
def extension_of_another_torch(machine: Machine) -> Iterator[Finding]:
    """Read off the symbols of both, as the loader does at the import; nothing is imported."""
    return foreign(machine, tuple(OWN), rest=True)


@probe(
    "torchvision-of-another-torch",
    "KB0075",
    "torchvision or torchaudio was built for another PyTorch.",
    "torchvision 或 torchaudio 是为另一个 PyTorch 构建的。",
)
def torchvision_of_another_torch(machine: Machine) -> Iterator[Finding]:
    """By the version that its metadata demand, by its symbols, or by the CUDA of its build."""
    build = torch(machine)
    for name in ("torchvision", "torchaudio"):
        listed = list(pinned(machine, name)) or list(foreign(machine, (name,)))
        yield from listed
        folder = machine.folder_of(name)
        text = machine.read(f"{folder}/version.py") if folder and build and not listed else None
        built = re.search(
            r"^__version__\s*=\s*['\"]([^'\"]+\+(?:cpu|cu(\d+)\d))['\"]", text or "", re.MULTILINE
        )
        if not build or not built or not (build.cuda or build.version.endswith("+cpu")):
            continue
        if major(built[2] or "") != major(build.cuda):
            yield Finding(
                f"{folder}/version.py",
                f"{name} {built[1]}",
                f"torch {build.version}, cuda = {build.cuda or None}",
                "pip install --force-reinstall --no-deps "
                f"{name}=={built[1].partition('+')[0]} --index-url {index_of(build.version)}",
            )


def index_of(version: str) -> str:
    """The index that a build of PyTorch comes from."""
    return "https://download.pytorch.org/whl/" + (version.partition("+")[2] or "cpu")


def pinned(machine: Machine, name: str) -> Iterator[Finding]:
    """A distribution whose metadata demand another PyTorch, to the digit."""
    build, distribution = torch(machine), machine.distribution(name)
    wanted = requirement(distribution, "torch") or ""
    if build and distribution and "==" in wanted and within(build.version, wanted) is False:
        yield Finding(
            distribution.metadata,
            f"torch {build.version}",
            f"{name} {distribution.version}: torch{wanted}",
            f'pip install "torch{wanted}" "{name}=={distribution.version}"',
        )


@probe(
    "xformers-of-another-torch",
    "KB0092",
    "xFormers was built for another PyTorch, and its kernels will not be loaded.",
    "xFormers 是为另一个 PyTorch 构建的，它的 kernel 不会被加载。",
)
def xformers_of_another_torch(machine: Machine) -> Iterator[Finding]:
    """By its pin, its symbols, or the CUDA run-time library that it needs."""
    listed = list(pinned(machine, "xformers")) or list(foreign(machine, ("xformers",)))
    yield from listed or runtime_missing(machine, ("xformers",))


@probe(
    "engine-pins-another-torch",
    "KB0053",
    "A package that is bound to one PyTorch is installed beside another.",
    "绑定某一版 PyTorch 的包与另一版 PyTorch 装在一起。",
)
def engine_pins_another_torch(machine: Machine) -> Iterator[Finding]:
    """Packages with compiled code, as vLLM: what is only Python may work with another one."""
    for name in extensions(machine):
        if name not in OWN:
            yield from pinned(machine, name)


def runtime_missing(
    machine: Machine, names: Tuple[str, ...], rest: bool = False
) -> Iterator[Finding]:
    """Extensions that need a CUDA library which is neither loaded by PyTorch nor to be found."""
    process, build = process_of(machine), torch(machine)
    wheels = {
        *wheel_libraries(machine),
        *(m.name for m in process.missing),
    }  # the latter: PyTorch's
    for name, paths in extensions(machine).items():
        for path in paths if (name in names) != rest and build else ():
            loader = Loader(machine)
            loader.loaded = dict(process.loaded)
            loader.load(path)
            missing = [m.name for m in loader.missing if m.name.startswith("libcu")]
            absent = [m for m in missing if m not in wheels and m != "libcuda.so.1"]
            if absent and build:
                expected: Text = (
                    f"a build for CUDA {build.cuda or None}",
                    f"为 CUDA {build.cuda or None} 构建",
                )
                yield Finding(
                    path,
                    f"{name} {machine.version(name)}: {absent[0]}",
                    expected,
                    f"{REBUILD} {name}",
                )
                break


@probe(
    "extension-of-another-cuda",
    "KB0056",
    "A compiled package needs the library of a CUDA that is not installed.",
    "某个编译好的包需要未安装的 CUDA 版本的库。",
)
def extension_of_another_cuda(machine: Machine) -> Iterator[Finding]:
    """Mostly one for CUDA 12 beside a PyTorch for CUDA 13."""
    return runtime_missing(machine, ("xformers",), rest=True)


@probe(
    "wheel-of-another-torch",
    "KB0053",
    "The wheel that was installed is named for another PyTorch, CUDA or C++ interface.",
    "安装的 wheel 文件名表明它面向另一个 PyTorch、CUDA 或 C++ ABI。",
)
def wheel_of_another_torch(machine: Machine) -> Iterator[Finding]:
    """flash-attn, mamba-ssm and causal-conv1d name them so: `+cu12torch2.8cxx11abiTRUE`."""
    build = torch(machine)
    for name, several in machine.distributions.items():
        wheel = wheel_name(machine, several[0])
        match = re.search(r"\+cu(\d+)torch(\d+\.\d+)(?:cxx11abi(TRUE|FALSE))?", wheel)
        if not build or not match:
            continue
        cuda = match[1][:2]
        if within(build.version, f"=={match[2]}.*") is False or (
            build.cuda and cuda != str(major(build.cuda))
        ):
            yield Finding(
                f"{several[0].metadata}",
                f"{name}: {match[0][1:]}",
                f"torch {build.version}, CUDA {build.cuda or None}",
                f"{REBUILD} {name}",
            )


def wheel_name(machine: Machine, distribution: Distribution) -> str:
    """The version and, if it was installed from an address, the name of the wheel."""
    url = machine.read(f"{distribution.metadata}/direct_url.json") or ""
    return f"{distribution.version} {url.replace('%2B', '+')}"


@probe(
    "bitsandbytes-binary",
    "KB0097",
    "bitsandbytes has no binary for the CUDA of this PyTorch.",
    "bitsandbytes 没有面向这个 PyTorch 的 CUDA 版本的二进制库。",
)
def bitsandbytes_binary(machine: Machine) -> Iterator[Finding]:
    """From 0.50 on it takes one of the same major version; before, exactly that one."""
    build, folder = torch(machine), machine.folder_of("bitsandbytes")
    version = machine.version("bitsandbytes")
    if not build or not build.cuda or not folder or not version:
        return
    names = machine.names(folder)
    listed = re.findall(r"libbitsandbytes_cuda(\d+)(?:_nocublaslt\d*)?\.so", " ".join(names))
    override = machine.environment.get("BNB_CUDA_VERSION", "")
    wanted = override or build.cuda.replace(".", "")
    same_major = [number for number in listed if number[:2] == wanted[:2]]
    if (
        not listed
        or wanted in listed
        or (same_major and within(version, ">=0.50") and not override)
    ):
        return
    yield Finding(
        f"BNB_CUDA_VERSION={override}" if override else folder,
        f"bitsandbytes {version}: cuda" + ", ".join(sorted(set(listed))),
        f"libbitsandbytes_cuda{wanted}.so",
        'unset BNB_CUDA_VERSION\npip install -U "bitsandbytes>=0.50,<0.51"',
    )


@probe(
    "libstdcxx-too-old",
    "KB0116",
    "A compiled package needs a newer libstdc++ than the one that would be loaded.",
    "某个编译好的包需要比将要加载的更新的 libstdc++。",
)
def libstdcxx_too_old(machine: Machine) -> Iterator[Finding]:
    """The first libstdc++ of a process serves all of it."""
    process, name = process_of(machine), "libstdc++.so.6"
    loaded = process.loaded.get(name) or process.find(name, machine.interpreter.executable)
    library = opened(machine, loaded.path) if loaded else None
    if library is None or loaded is None:
        return
    has = library.defined_versions()
    library.close()
    for package, paths in extensions(machine).items():
        for path in paths:
            user = opened(machine, path)
            needs = user.needed_versions().get(name, set()) if user else set()
            if user:
                user.close()
            absent = sorted(version for version in needs - has if version.startswith("GLIBCXX"))
            if absent and has:
                yield Finding(
                    path,
                    f"{package}: {absent[-1]}; {loaded.path}",
                    (f"a libstdc++ with {absent[-1]}", f"带有 {absent[-1]} 的 libstdc++"),
                    "conda install -c conda-forge libstdcxx\n"
                    "export LD_LIBRARY_PATH=$CONDA_PREFIX/lib:$LD_LIBRARY_PATH",
                )
                break
