"""Which file the dynamic loader takes for the name of a library, and why that one.

Follows glibc: a name that is in the process already; `RPATH` of what asks and of what loaded that,
unless it has a `RUNPATH`; `LD_LIBRARY_PATH`; `RUNPATH` of what asks; the cache; `/lib` and
`/usr/lib` (ld.so(8)).
"""

from __future__ import annotations

import posixpath
import re
from typing import Dict, List, NamedTuple, Optional, Tuple

from kbtools.doctor.elf import Library
from kbtools.doctor.machine import Machine

CACHE = "the loader's cache"
DEFAULT = "the default folders"
VARIABLE = "LD_LIBRARY_PATH"


class Loaded(NamedTuple):
    """A library as the loader found it."""

    path: str
    by: str
    """`RPATH`, `RUNPATH` and so on; empty: its path was given."""
    requester: str
    """The path of the library that asked for it."""


class Missing(NamedTuple):
    """A library that the loader does not find."""

    name: str
    requester: str


class Header(NamedTuple):
    """The parts of a library that the search depends on."""

    soname: str
    needed: List[str]
    rpath: List[str]
    runpath: List[str]


class Loader:
    """The libraries of a process, as far as they follow from files."""

    def __init__(self, machine: Machine) -> None:
        """Begins with an empty process; `machine` is the one whose files are searched."""
        self.machine = machine
        self.loaded: Dict[str, Loaded] = {}
        """Name → the file that stands for it."""
        self.missing: List[Missing] = []

    def load(self, path: str, requester: str = "", by: str = "") -> bool:
        """Loads a library and all that it needs; false if there is none at that path."""
        queue: List[Tuple[str, Tuple[str, ...]]] = []
        header = header_of(self.machine, path)
        if header is None:
            return False
        self._note(path, header, Loaded(path, by, requester))
        queue.append((path, ()))
        while queue:
            current, chain = queue.pop(0)
            header = header_of(self.machine, current)
            for name in header.needed if header else ():
                if name in self.loaded:
                    continue
                loaded = self.find(name, current, chain)
                if loaded is None:
                    self.missing.append(Missing(name, current))
                    continue
                target = header_of(self.machine, loaded.path)
                if target:
                    self._note(loaded.path, target, loaded)
                    self.loaded.setdefault(name, loaded)
                    queue.append((loaded.path, (current, *chain)))
        return True

    def _note(self, path: str, header: Header, loaded: Loaded) -> None:
        for name in {header.soname, posixpath.basename(path)} - {""}:
            self.loaded.setdefault(name, loaded)

    def find(self, name: str, requester: str, chain: Tuple[str, ...] = ()) -> Optional[Loaded]:
        """The file that a name stands for.

        Args:
            name: as in `libnccl.so.2`.
            requester: the path of the library that needs it.
            chain: what loaded that one, the nearest first.
        """
        own = header_of(self.machine, requester)
        searched: List[Tuple[str, str]] = []
        if own and not own.runpath:
            for path in (requester, *chain):
                header = header_of(self.machine, path)
                if header and not header.runpath:
                    searched += [(folder, "RPATH") for folder in origins(header.rpath, path)]
        searched += [(folder, VARIABLE) for folder in library_path(self.machine)]
        searched += [(f, "RUNPATH") for f in (origins(own.runpath, requester) if own else ())]
        for folder, by in searched:
            candidate = posixpath.join(folder, name)
            if header_of(self.machine, candidate):
                return Loaded(candidate, by, requester)
        cached = cache_of(self.machine).get(name)
        if cached and header_of(self.machine, cached):
            return Loaded(cached, CACHE, requester)
        for folder in default_folders(self.machine):
            candidate = posixpath.join(folder, name)
            if header_of(self.machine, candidate):
                return Loaded(candidate, DEFAULT, requester)
        return None


def header_of(machine: Machine, path: str) -> Optional[Header]:
    """The header of a library of the machine; None if there is none at that path."""

    def read() -> Optional[Header]:
        library = opened(machine, path)
        if library is None:
            return None
        try:
            return Header(library.soname, library.needed, library.rpath, library.runpath)
        except (ValueError, KeyError):
            return None
        finally:
            library.close()

    return machine.once(("header", path), read)


def opened(machine: Machine, path: str) -> Optional[Library]:
    """A library of the machine, to be closed; None if there is none at that path."""
    if not machine.is_file(path):
        return None
    try:
        return Library(machine.path(path))
    except (OSError, ValueError):
        return None


def origins(folders: List[str], path: str) -> List[str]:
    """Folders of a library, with its own folder in place of `$ORIGIN`."""
    origin = posixpath.dirname(path)
    named = [re.sub(r"\$\{?ORIGIN\}?", lambda _: origin, folder) for folder in folders]
    return [posixpath.normpath(folder) for folder in named]


def library_path(machine: Machine) -> List[str]:
    """The folders of `LD_LIBRARY_PATH`; an empty entry stands for the working folder."""
    value = machine.environment.get(VARIABLE, "")
    return [folder or "." for folder in re.split("[:;]", value)] if value else []


def cache_of(machine: Machine) -> Dict[str, str]:
    """Name → path, of the libraries in the loader's cache for this kind of machine."""

    def read() -> Dict[str, str]:
        entries: Dict[str, str] = {}
        for program in ("/sbin/ldconfig", "ldconfig"):
            result = machine.run([program, "-p"])
            if result is not None and not result.code:
                kind = {"x86_64": "x86-64", "aarch64": "AArch64"}.get(
                    machine.interpreter.machine, ""
                )
                for name, flags, path in re.findall(
                    r"^\s*(\S+) \(([^)]*)\) => (\S+)", result.output, re.MULTILINE
                ):
                    if kind in flags:
                        entries.setdefault(name, path)
                break
        return entries

    return machine.once("loader cache", read)


def default_folders(machine: Machine) -> List[str]:
    """The folders that are searched at last; Debian's loader knows those with a triplet, too."""
    triplet = f"{machine.interpreter.machine}-linux-gnu"
    return [f"/lib/{triplet}", f"/usr/lib/{triplet}", "/lib64", "/usr/lib64", "/lib", "/usr/lib"]
