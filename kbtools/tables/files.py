"""What the name of a wheel says: for which Pythons and platforms it is."""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec
from packaging.tags import Tag, compatible_tags, cpython_tags
from packaging.utils import (
    InvalidSdistFilename,
    InvalidWheelFilename,
    parse_sdist_filename,
    parse_wheel_filename,
)
from packaging.version import Version

from kbtools.tables.model import SOURCE

ANY = "any"


class Named(msgspec.Struct, frozen=True):
    """A file's name, taken apart."""

    version: Version
    platform: str
    """As in `linux-x86_64`; `any`; `source`."""
    tags: tuple[str, ...]
    """Python and ABI, as in `cp312-cp312`; none of a source archive."""
    glibc: str = ""
    build: int = 0
    """Of several wheels of a release, an installer takes that with the highest number."""

    @property
    def is_without_lock(self) -> bool:
        """Whether it is only for Pythons without the global lock."""
        return bool(self.tags) and all(re.search(r"-cp\d+t$", tag) for tag in self.tags)


def parse(filename: str) -> Named | None:
    """The name of a wheel or of a source archive, taken apart; None for another file."""
    try:
        if not filename.endswith(".whl"):
            return Named(parse_sdist_filename(filename)[1], SOURCE, ())
        _, version, build, tags = parse_wheel_filename(filename)
    except (InvalidSdistFilename, InvalidWheelFilename):
        return None
    names = {platform_of(tag) for tag in tags}
    glibc = min((text for tag in tags if (text := _glibc(tag))), key=Version, default="")
    pairs = sorted({f"{tag.interpreter}-{tag.abi}" for tag in tags})
    return Named(version, sorted(names)[0], tuple(pairs), glibc, build[0] if build else 0)


def platform_of(tag: Tag) -> str:
    """The kind of machine of a tag: `linux-x86_64` for each of its manylinux tags."""
    if match := re.fullmatch(
        r"(?:many|musl)?linux\w*?_(x86_64|aarch64|i686|ppc64le|s390x)", tag.platform
    ):
        return f"{'musl' if tag.platform.startswith('musl') else ''}linux-{match[1]}"
    if tag.platform.startswith("macosx"):
        return f"macos-{'arm64' if tag.platform.endswith('arm64') else 'x86_64'}"
    return tag.platform.replace("_", "-", 1)


def _glibc(tag: Tag) -> str:
    if match := re.match(r"manylinux_(\d+)_(\d+)_", tag.platform):
        return f"{match[1]}.{match[2]}"
    old = {"manylinux1": "2.5", "manylinux2010": "2.12", "manylinux2014": "2.17"}
    return old.get(tag.platform.partition("_")[0], "")


def pairs_of(python: str) -> frozenset[str]:
    """The Python and ABI tags that a Python takes, as in `cp313-cp313`, `cp39-abi3`, `py3-none`.

    Args:
        python: As in `3.13`, or `3.13t` for one without the global lock.
    """
    version = tuple(map(int, python.rstrip("t").split(".")[:2]))
    name = f"cp{version[0]}{version[1]}"
    abis = [f"{name}t"] if python.endswith("t") else None
    tags = {*cpython_tags(version, abis, ["any"]), *compatible_tags(version, name, ["any"])}
    return frozenset(f"{tag.interpreter}-{tag.abi}" for tag in tags)


def pythons_of(tags: Iterable[str], among: Iterable[str]) -> tuple[str, ...]:
    """Those Pythons that take a wheel with one of these tags."""
    wanted = set(tags)
    return tuple(python for python in among if not wanted.isdisjoint(pairs_of(python)))
