"""The distributions that an interpreter finds, read off their metadata; nothing is imported."""

from __future__ import annotations

import posixpath
import re
from typing import TYPE_CHECKING, Dict, List, NamedTuple, Tuple

if TYPE_CHECKING:
    from kbtools.doctor.machine import Machine


class Distribution(NamedTuple):
    """An installed distribution."""

    name: str
    """Canonical: lower case, with single hyphens."""
    version: str
    folder: str
    """The folder of packages that it is in."""
    metadata: str
    """The path of its folder of metadata, or of its file."""
    requires: Tuple[str, ...]
    """Its `Requires-Dist`, as they are written."""


def canonical(name: str) -> str:
    """The canonical form of the name of a distribution."""
    return re.sub(r"[-_.]+", "-", name).lower()


def distributions_in(machine: Machine) -> Dict[str, List[Distribution]]:
    """Canonical name → distributions of that name, in the order of `sys.path`."""
    result: Dict[str, List[Distribution]] = {}
    visited = set()
    for folder in machine.interpreter.path:
        real = machine.real(folder)
        if real in visited:
            continue
        visited.add(real)
        for name in machine.names(folder):
            if not name.endswith((".dist-info", ".egg-info")):
                continue
            distribution = _read(machine, folder, name)
            if distribution:
                result.setdefault(distribution.name, []).append(distribution)
    return result


def _read(machine: Machine, folder: str, name: str) -> Distribution | None:
    path = posixpath.join(folder, name)
    is_egg = name.endswith(".egg-info")
    file = posixpath.join(path, "PKG-INFO" if is_egg else "METADATA")
    text = machine.read(file, 1 << 18) or (machine.read(path) if is_egg else None)
    if text is None:
        return None
    head = text.partition("\n\n")[0]
    names = re.findall(r"^Name:\s*(\S+)", head, re.MULTILINE)
    versions = re.findall(r"^Version:\s*(\S+)", head, re.MULTILINE)
    if not names or not versions:
        return None
    requires = re.findall(r"^Requires-Dist:\s*(.+?)\s*$", head, re.MULTILINE)
    return Distribution(canonical(names[0]), versions[0], folder, path, tuple(requires))


def files_of(machine: Machine, distribution: Distribution) -> List[Tuple[str, int]]:
    """The files that a distribution brought: path and size, -1 where it does not say.

    They are those of its `RECORD`; none if it has none.
    """
    record = machine.read(posixpath.join(distribution.metadata, "RECORD"), 1 << 23)
    result = []
    for line in (record or "").splitlines():
        path, _, rest = line.rpartition(",sha256=") if ",sha256=" in line else line.partition(",")
        size = rest.rpartition(",")[2]
        path = path.strip('"')
        if path:
            full = posixpath.normpath(posixpath.join(distribution.folder, path))
            result.append((full, int(size) if size.isdigit() else -1))
    return result
