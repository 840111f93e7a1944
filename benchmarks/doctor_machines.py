"""A planted machine as a root directory that any program can be started in.

Everything stands where it would: packages below /venv, a toolkit in /usr/local/cuda, the devices,
/proc/driver/nvidia/version, the size of /dev/shm. The real system lies below it, in an overlay,
without its own compilers, toolkits and drivers. That needs root and a mount namespace; nothing is
changed outside of it.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import stat
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import msgspec

from kbtools.doctor import planting
from kbtools.doctor.planting import MachineSpec

HIDDEN = (
    *("gcc", "g++", "cc", "c++", "clang", "clang++", "ninja", "nvcc", "nvidia-smi", "ldconfig"),
    *("nvidia-modprobe", "dmesg", "journalctl"),
)
"""Programs of the real system that a planted machine does not have unless it plants them."""
START = ("unshare", "--net", "chroot")
HOME = "/home/ada"
"""Where programs start: in an empty folder, since some look through the files around them."""
FOLDERS = ("usr/bin", "usr/sbin", "usr/local/bin", "usr/local/sbin")
DEVICES = {"null": (1, 3), "zero": (1, 5), "random": (1, 8), "urandom": (1, 9)}
CUDA_OF = {"470": "11.4", "535": "12.2", "570": "12.8", "580": "13.0"}
"""Major version of a driver → the CUDA that nvidia-smi names for it."""
TORCH = """
from types import SimpleNamespace as _N
from .version import __version__, cuda as _cuda
version = _N(cuda=_cuda, hip=None, git_version="")
_seen = bool(_cuda) and {gpus} and {count} > 0
cuda = _N(
    is_available=lambda: _seen, device_count=lambda: {count} if _seen else 0,
    get_arch_list=lambda: {targets!r}.split(), get_device_name=lambda i=0: {name!r},
    get_device_capability=lambda i=0: {capability},
    get_device_properties=lambda i=0: _N(
        name={name!r}, major={capability}[0], minor={capability}[1], total_memory=85 * 10**9
    ),
    is_initialized=lambda: False,
    nccl=_N(version=lambda: (2, 27, 3)),
)
backends = _N(cudnn=_N(version=lambda: 91002, is_available=lambda: _seen, enabled=True))
distributed = _N(is_available=lambda: True, is_nccl_available=lambda: bool(_cuda))
"""
SMI = """#!{python}
import sys
rows, cuda = {rows!r}, {cuda!r}
query = next((a for a in sys.argv if a.startswith("--query-gpu=")), "")
if query:
    for index, (name, capability, driver) in enumerate(rows):
        fields = {{"name": name, "compute_cap": capability, "driver_version": driver}}
        fields["gpu_name"] = name
        fields |= {{"index": str(index), "memory.total": "81559 MiB", "uuid": f"GPU-{{index}}"}}
        print(", ".join(fields.get(f, "[N/A]") for f in query.partition("=")[2].split(",")))
elif "-L" in sys.argv:
    print(*[f"GPU {{i}}: {{row[0]}} (UUID: GPU-{{i}})" for i, row in enumerate(rows)], sep="\\n")
else:
    print(f"| NVIDIA-SMI {{rows[0][2]}}  Driver Version: {{rows[0][2]}}  CUDA Version: {{cuda}} |")
"""


OLDEST_DRIVER = {"11": 450, "12": 525, "13": 580}
"""Major version of CUDA → the oldest driver that a build with it finds GPUs with."""


class Symptom(msgspec.Struct, frozen=True):
    """What fails on a machine as it would with real libraries, which are planted as headers."""

    at_import: str = ""
    """What `import torch` raises, as an ImportError."""
    of_smi: str = ""
    """What nvidia-smi prints before it ends with 18."""


class PlacedMachine(msgspec.Struct, frozen=True):
    """A root directory with a planted machine in it, as long as it is mounted."""

    root: Path
    variables: dict[str, str]

    def run(self, *command: str, more: Mapping[str, str] | None = None) -> tuple[str, str]:
        """What a program prints without a network, on standard output and on standard error."""
        process = subprocess.run(
            [*START, str(self.root), "/usr/bin/env", f"--chdir={HOME}", *command],
            env={**self.variables, **(more or {})},
            cwd="/",
            capture_output=True,
            timeout=90,
            check=False,
        )
        return process.stdout.decode("utf-8", "replace"), process.stderr.decode("utf-8", "replace")


def enter_namespace() -> None:
    """Starts this program again where its mounts are seen by nobody else.

    Raises:
        SystemExit: this user may not mount.
    """
    if os.environ.get("KBTOOLS_NAMESPACE"):
        return
    if os.geteuid():
        sys.exit("--others mounts planted machines: run it as root, or in a container")
    command = ["unshare", "--mount", "--propagation", "private", sys.executable, *sys.argv]
    os.execvpe(command[0], command, {**os.environ, "KBTOOLS_NAMESPACE": "1"})


@contextmanager
def placed(
    spec: MachineSpec, folder: Path, archive: bytes, symptom: Symptom
) -> Iterator[PlacedMachine]:
    """Mounts a planted machine below a folder, with `doctor.pyz` in its root.

    Args:
        spec: what is planted.
        folder: an empty one.
        archive: the content of `doctor.pyz`.
        symptom: what fails there.
    """
    mount("tmpfs", "tmpfs", folder)
    planted, upper, work, root = (folder / name for name in ("planted", "upper", "work", "root"))
    for path in (planted, upper, work, root):
        path.mkdir()
    try:
        variables = _plant(spec, planted, symptom)
        _hide(planted)
        (planted / "doctor.pyz").write_bytes(archive)
        options = f"lowerdir={planted}:/,upperdir={upper},workdir={work}"
        mount("overlay", "overlay", root, options)
        mount("proc", "proc", root / "proc")
        text = spec.files.get("/proc/driver/nvidia/version")
        mount("tmpfs", "tmpfs", root / "proc" / "driver")
        if text:
            (root / "proc/driver/nvidia").mkdir()
            (root / "proc/driver/nvidia/version").write_text(text)
        size = spec.facts.get("space", {}).get("/dev/shm", [1 << 33])[0]
        mount("tmpfs", "tmpfs", root / "dev/shm", f"size={size}")
        yield PlacedMachine(root, variables)
    finally:
        subprocess.run(["umount", "--recursive", "--lazy", str(folder)], check=False)


def mount(kind: str, source: str, target: Path, options: str = "") -> None:
    """Mounts a file system, where a folder is made for it."""
    target.mkdir(parents=True, exist_ok=True)
    words = ["-o", options] if options else []
    subprocess.run(["mount", "-t", kind, *words, source, str(target)], check=True)


def _plant(spec: MachineSpec, root: Path, symptom: Symptom) -> dict[str, str]:
    """Writes the files of a machine with a Python that runs; the variables of its user."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", root / "venv"], check=True)
    site = next((root / "venv/lib").glob("python*/site-packages"))
    inside = "/" + site.relative_to(root).as_posix()
    machine = planting.plant(msgspec.structs.replace(spec, site=inside), root)
    result = machine.run(["nvidia-smi", "--query-gpu=name,compute_cap,driver_version"])
    rows = [row.split(", ") for row in result.output.strip().splitlines()] if result else []
    _driver(spec, rows)
    _torch(spec, site, [] if symptom.of_smi else rows)
    if symptom.at_import:
        (site / "torch").mkdir(exist_ok=True)
        (site / "torch/__init__.py").write_text(f"raise ImportError({symptom.at_import!r})\n")
    _programs(spec, root, rows)
    if symptom.of_smi:
        script = f"#!/bin/sh\necho '{symptom.of_smi}'\nexit 18\n"
        (root / "usr/bin/nvidia-smi").write_text(script)
    shutil.rmtree(root / "proc", ignore_errors=True)
    for name in ("bin", "sbin", "lib"):  # on the real system they are links
        if (root / name).is_dir():
            shutil.copytree(root / name, root / "usr" / name, dirs_exist_ok=True)
            shutil.rmtree(root / name)
    (root / HOME.lstrip("/")).mkdir(parents=True, exist_ok=True)
    _toolkit(spec, root)
    if later := float(spec.facts.get("now", 0)):  # a file that is old on the planted machine
        age = min(later - time.time(), 30 * 86400)
        for file in root.rglob("*lock*"):
            os.utime(file, (time.time() - age, time.time() - age))
    return {**machine.environment, "PYTHONDONTWRITEBYTECODE": "1"}


def _toolkit(spec: MachineSpec, root: Path) -> None:
    """What other programs look for in a toolkit, beside its compiler: a version and a library."""
    version = re.search(r"V([0-9.]+)", spec.commands.get("nvcc --version", ""))
    for program in spec.programs:
        home, is_nvcc, _ = program.partition("/bin/nvcc")
        if is_nvcc and version:
            folder = root / home.lstrip("/")
            text = json.dumps({"cuda": {"name": "CUDA SDK", "version": version[1]}})
            (folder / "version.json").write_text(text)
            (folder / "lib64").mkdir(exist_ok=True)
            for name in ("libcudart.so", f"libcudart.so.{version[1].partition('.')[0]}"):
                (folder / "lib64" / name).touch()


def _hide(root: Path) -> None:
    """Takes the real system's compilers, toolkits and drivers out of the overlay."""
    names = {path.name for path in Path("/usr/local").iterdir() if "cuda" in path.name}
    names |= {path.name for path in Path("/usr/local").iterdir() if "nvcc" in path.name}
    places = [root / "usr/local" / name for name in names]
    for folder in FOLDERS:
        real = [path.name for path in Path("/", folder).iterdir()]
        places += [root / folder / n for n in real if n.partition("-")[0] in HIDDEN]
    for place in places:
        if place.is_dir() and "cuda" in place.name:  # it stands for itself, not for both
            os.setxattr(place, "trusted.overlay.opaque", b"y")
        elif not os.path.lexists(place):
            place.parent.mkdir(parents=True, exist_ok=True)
            os.mknod(place, stat.S_IFCHR, os.makedev(0, 0))  # a whiteout of overlayfs
    (root / "dev").mkdir(exist_ok=True)
    for name, numbers in DEVICES.items():
        os.mknod(root / "dev" / name, stat.S_IFCHR | 0o666, os.makedev(*numbers))


def _driver(spec: MachineSpec, rows: list[list[str]]) -> None:
    """nvidia-smi of a real machine has the version that the kernel has."""
    text = spec.files.get("/proc/driver/nvidia/version", "")
    versions = [word for word in text.split() if word[:3].isdigit() and "." in word]
    for row in rows if versions else ():
        row[2] = versions[0]


def _torch(spec: MachineSpec, site: Path, rows: list[list[str]]) -> None:
    if not (site / "torch/version.py").is_file():
        return
    library = next((s for p, s in spec.libraries.items() if p.endswith("libtorch_python.so")), None)
    visible = spec.environment.get("CUDA_VISIBLE_DEVICES", "0")
    cuda = re.search(r"cuda[^=\n]*= '(\d+)", (site / "torch/version.py").read_text())
    driver = int(rows[0][2].partition(".")[0]) if rows else 0
    is_new = driver >= OLDEST_DRIVER.get(cuda[1] if cuda else "", 0)
    fields = {
        "gpus": bool(rows) and visible in ("0", "1") and is_new,
        "count": len(rows),
        "targets": library.text if library else "",
        "name": rows[0][0] if rows else "",
        "capability": tuple(int(n) for n in rows[0][1].split(".")) if rows else (0, 0),
    }
    (site / "torch/__init__.py").write_text(TORCH.format(**fields))


def _programs(spec: MachineSpec, root: Path, rows: list[list[str]]) -> None:
    """Scripts that print what is planted for them; nvidia-smi answers any question about fields."""
    folder = root / "usr/bin"
    folder.mkdir(parents=True, exist_ok=True)
    outputs: dict[str, list[tuple[str, str]]] = {}
    for line, output in spec.commands.items():
        name, _, arguments = line.partition(" ")
        outputs.setdefault(name, []).append((arguments, output))
    for name, answers in outputs.items():
        if name in ("python", "nvidia-smi"):
            continue
        cases = "\n".join(
            f"  '{a}'*) printf '%s' '{o.lstrip('!')}'; exit {int(o[:1] == '!')} ;;"
            for a, o in answers
        )
        places = [root / p.lstrip("/") for p in spec.programs if p.endswith(f"/{name}")]
        for place in places or [folder / name]:
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(f'#!/bin/sh\ncase "$*" in\n{cases}\nesac\n')
            place.chmod(0o755)
    if rows:
        major = rows[0][2].partition(".")[0]
        script = SMI.format(python=sys.executable, rows=rows, cuda=CUDA_OF.get(major, "12.8"))
        (folder / "nvidia-smi").write_text(script)
        (folder / "nvidia-smi").chmod(0o755)
