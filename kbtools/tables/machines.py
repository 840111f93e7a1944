"""What a machine is to wheels: its Python, platform and GPU, and whether a wheel is for it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cached_property

import msgspec

from kbtools.config import KbtoolsError
from kbtools.tables.files import ANY, pairs_of, parse
from kbtools.tables.model import SOURCE, Release, contains

PLATFORMS = ("linux-x86_64", "linux-aarch64", "win-amd64", "macos-arm64", "macos-x86_64")
PYTHON = re.compile(r"3\.\d{1,2}t?")
TARGET = re.compile(r"(sm|compute)_(\d{1,2})(\d)([af]?)")


class MachineError(KbtoolsError):
    """A Python or a platform in a question cannot be understood."""


class Machine(msgspec.Struct, frozen=True, dict=True):
    """A machine that something is to be installed on."""

    python: str
    """As in `3.13`, or `3.13t` for one without the global lock."""
    platform: str
    """One of `PLATFORMS`."""
    sm: str = ""
    """Compute capability of its GPU, as in `12.0`; empty: unknown."""
    driver: str = ""
    """Version of its NVIDIA driver; empty: unknown."""
    glibc: str = ""
    """Version of its C library; empty: unknown."""

    def __post_init__(self) -> None:
        if not PYTHON.fullmatch(self.python):
            raise MachineError(f"`{self.python}` is not a Python as in 3.13 or 3.13t")
        if self.platform not in PLATFORMS:
            names = ", ".join(PLATFORMS)
            raise MachineError(f"unknown platform `{self.platform}`; it is one of: {names}")

    @cached_property
    def pairs(self) -> frozenset[str]:
        """The Python and ABI tags that it takes."""
        return pairs_of(self.python)

    @cached_property
    def versions(self) -> dict[str, str]:
        """Its versions, as statements name them."""
        named = {"python": self.python.rstrip("t"), "sm": self.sm, "driver": self.driver}
        return {name: version for name, version in named.items() if version}

    def takes(self, file: str) -> bool:
        """Whether a file is no wheel for another Python, by its name."""
        named = parse(file)
        return named is None or not named.tags or not self.pairs.isdisjoint(named.tags)

    @property
    def markers(self) -> dict[str, str]:
        """The environment that a requirement's marker asks about (PEP 508)."""
        system, _, machine = self.platform.partition("-")
        names = {"linux": ("linux", "Linux", "posix"), "win": ("win32", "Windows", "nt")}
        sys_platform, platform_system, os_name = names.get(system, ("darwin", "Darwin", "posix"))
        return {
            "python_version": self.python.rstrip("t"),
            "python_full_version": f"{self.python.rstrip('t')}.0",
            "sys_platform": sys_platform,
            "platform_system": platform_system,
            "platform_machine": machine.upper() if system == "win" else machine,
            "os_name": os_name,
            "implementation_name": "cpython",
            "platform_python_implementation": "CPython",
            "platform_release": "",
            "platform_version": "",
            "implementation_version": f"{self.python.rstrip('t')}.0",
            "extra": "",
        }


def runs_on(sm: str, targets: Iterable[str]) -> bool:
    """Whether code for these targets runs on a GPU.

    Machine code (`sm_86`) runs on the same major version from its minor version on, `sm_90a` on its
    own alone, `sm_100f` on its major version; PTX (`compute_90`) on everything from it on. See the
    CUDA C++ Programming Guide on binary and PTX compatibility.

    Args:
        sm: Compute capability, as in `12.0`.
        targets: As in `sm_90`; others are passed over.
    """
    major, minor = map(int, sm.split("."))
    for target in targets:
        match = TARGET.fullmatch(target)
        if not match:
            continue
        kind, suffix = match[1], match[4]
        target_major, target_minor = int(match[2]), int(match[3])
        if suffix == "a":
            if (major, minor) == (target_major, target_minor):
                return True
        elif kind == "compute" and not suffix:
            if (major, minor) >= (target_major, target_minor):
                return True
        elif major == target_major and minor >= target_minor:
            return True
    return False


def misfit(release: Release, machine: Machine) -> str:
    """Why a release cannot be installed on a machine; empty if it can."""
    name = f"{release.package} {release.version}"
    if release.platform not in (machine.platform, ANY, SOURCE):
        return f"no wheel of {name} for {machine.platform}"
    python = machine.python.rstrip("t")
    patches = (python, f"{python}.99")  # as in `>=3.9.2` and `<3.13.1`
    if release.requires_python and not any(contains(release.requires_python, p) for p in patches):
        return f"{name} needs Python {release.requires_python}"
    if release.platform != SOURCE and machine.pairs.isdisjoint(release.tags):
        return f"{name} has no wheel for Python {machine.python} on {release.platform}"
    if machine.glibc and release.glibc and not contains(f">={release.glibc}", machine.glibc):
        return f"the wheels of {name} need glibc {release.glibc}"
    return ""
