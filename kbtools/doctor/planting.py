"""Machines that are planted in a folder, to see whether a probe finds what is wrong with them.

Beside each file of probes stands a file of cases, in TOML: machines on which a probe must find
something, and machines on which it must not. `pieces.toml` has parts that several cases share.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec

from kbtools.config import KbtoolsError
from kbtools.doctor.machine import Interpreter, Machine, Result
from kbtools.doctor.planted_elf import LibrarySpec, content_of

PIECES = "pieces.toml"


Kind = Literal["finds", "quiet", "unanswered"]


class CaseError(KbtoolsError):
    """A file of cases cannot be read."""


class PackageSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A planted distribution."""

    version: str
    requires: tuple[str, ...] = ()
    folder: str = ""
    """The folder of packages that it is in; empty: that of the interpreter."""
    direct_url: str = ""
    record: dict[str, int] = {}
    """Path → bytes, of the files that it says it brought."""


class MachineSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is planted; of several pieces the later one counts, key by key."""

    about: str = ""
    pieces: tuple[str, ...] = ()
    expect: tuple[str, ...] = ()
    """Texts that a finding must have, or the reason why a probe cannot tell."""
    environment: dict[str, str] = {}
    unset: tuple[str, ...] = ()
    packages: dict[str, PackageSpec | str] = {}
    """Name → the version, or more."""
    files: dict[str, str] = {}
    folders: tuple[str, ...] = ()
    libraries: dict[str, LibrarySpec] = {}
    commands: dict[str, str] = {}
    """Beginning of a command line → what it prints; `!` and a text: it fails with that."""
    programs: tuple[str, ...] = ()
    """Paths of programs that exist."""
    without: tuple[str, ...] = ()
    """Paths of a piece that are not there."""
    facts: dict[str, Any] = {}
    """What the system answers; see `kbtools.doctor.machine.Machine`."""
    python: str = "3.12.3"
    site: str = "/venv/lib/python3.12/site-packages"
    libc: str = "2.39"
    processor: str = "x86_64"
    path: tuple[str, ...] = ()
    """More folders of packages, in front of `site`."""


class Case(msgspec.Struct, frozen=True):
    """A planted machine, and what a probe must say of it."""

    probe: str
    number: int
    kind: Kind
    """Whether it must find something, must not, or must say that it cannot tell."""
    machine: MachineSpec

    @property
    def name(self) -> str:
        """As in `cpu-build: finds 1`."""
        return f"{self.probe}: {self.kind} {self.number}"


class Planted(msgspec.Struct, frozen=True):
    """All that is planted for the probes of a folder."""

    cases: tuple[Case, ...]
    sound: Mapping[str, MachineSpec]
    """Machines on which no probe at all may find anything."""


MERGED = ("environment", "packages", "files", "libraries", "commands", "facts")
JOINED = ("folders", "programs", "path", "without", "unset")


def read(folder: Path) -> Planted:
    """The cases of a folder of probes.

    Raises:
        CaseError: a file is missing or is not valid.
    """
    try:
        shared = msgspec.toml.decode((folder / PIECES).read_bytes())
        pieces = shared.get("pieces", {})
        sound = {name: _spec(table, pieces) for name, table in shared.get("sound", {}).items()}
        cases = tuple(
            Case(probe, number, msgspec.convert(kind, Kind), _spec(table, pieces))
            for file in sorted(folder.glob("*.toml"))
            if file.name != PIECES
            for probe, kinds in msgspec.toml.decode(file.read_bytes()).items()
            for kind, tables in kinds.items()
            for number, table in enumerate(tables, 1)
        )
    except (OSError, msgspec.MsgspecError, KeyError, AttributeError) as error:
        raise CaseError(f"{folder}: {error}") from error
    return Planted(cases, sound)


def _spec(table: dict[str, Any], pieces: Mapping[str, dict[str, Any]]) -> MachineSpec:
    merged: dict[str, Any] = {}
    for part in [*_parts(table.get("pieces", ()), pieces), table]:
        for key, value in part.items():
            if key in MERGED:
                merged[key] = {**merged.get(key, {}), **value}
            elif key in JOINED:
                merged[key] = [*merged.get(key, ()), *value]
            else:
                merged[key] = value
    return msgspec.convert(merged, MachineSpec)


def _parts(names: Sequence[str], pieces: Mapping[str, dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for name in names:
        yield from _parts(pieces[name].get("pieces", ()), pieces)
        yield pieces[name]


def plant(spec: MachineSpec, root: Path) -> Machine:
    """Writes a machine into an empty folder, and gives the view that a probe has of it."""
    site = spec.site
    files = {path: text.encode() for path, text in spec.files.items()}
    files |= {path: content_of(library) for path, library in spec.libraries.items()}
    for name, package in spec.packages.items():
        files |= _metadata(name, package, site)
    files |= dict.fromkeys(spec.programs, b"#!/bin/sh\n")
    for path, content in files.items():
        if path not in spec.without:
            target = root / path.format(site=site).lstrip("/")
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
            if path in spec.programs:
                target.chmod(0o755)
    for folder in (site, *spec.folders):
        (root / folder.format(site=site).lstrip("/")).mkdir(parents=True, exist_ok=True)
    environment = {"PATH": "/venv/bin:/usr/bin:/bin:/sbin", "HOME": "/home/ada", "USER": "ada"}
    for name, value in spec.environment.items():
        environment[name] = value.format(site=site)
    for name in spec.unset:
        environment.pop(name, None)
    return Machine(
        _interpreter(spec),
        root=str(root),
        environment=environment,
        facts={"uid": 1000, **spec.facts},
        runner=Commands(spec.commands),
        seconds=60.0,
        active=True,
    )


def _metadata(name: str, package: PackageSpec | str, site: str) -> dict[str, bytes]:
    details = PackageSpec(package) if isinstance(package, str) else package
    stem = f"{name.replace('-', '_')}-{details.version}"
    folder = f"{details.folder or site}/{stem}.dist-info"
    head = [f"Name: {name}", f"Version: {details.version}"]
    head += [f"Requires-Dist: {requirement}" for requirement in details.requires]
    record = [f"{path},sha256=x,{size}" for path, size in details.record.items()]
    files = {f"{folder}/METADATA": "\n".join(["Metadata-Version: 2.1", *head, "", ""])}
    files[f"{folder}/RECORD"] = "\n".join([*record, f"{stem}.dist-info/METADATA,,", ""])
    if details.direct_url:
        files[f"{folder}/direct_url.json"] = f'{{"url": "{details.direct_url}"}}'
    return {path: text.encode() for path, text in files.items()}


def _interpreter(spec: MachineSpec) -> Interpreter:
    short = ".".join(spec.python.split(".")[:2])
    include = f"/usr/include/python{short}"
    return Interpreter(
        version=spec.python,
        executable="/venv/bin/python",
        prefix="/venv",
        base_prefix="/usr",
        path=[*spec.path, spec.site],
        include=include,
        platinclude=include,
        suffix=f".cpython-{short.replace('.', '')}-x86_64-linux-gnu.so",
        platform="linux",
        machine=spec.processor,
        libc=spec.libc,
        user_site="/home/ada/.local/lib/python3.12/site-packages",
    )


class Commands:
    """What the programs of a planted machine print; no program is started."""

    def __init__(self, outputs: Mapping[str, str]) -> None:
        """Takes the beginnings of command lines, and what each prints."""
        self.outputs = outputs

    def __call__(
        self, command: Sequence[str], environment: Mapping[str, str], limit: float
    ) -> Result | None:
        """The result of the longest beginning that fits; None if there is none."""
        line = " ".join([os.path.basename(command[0]), *command[1:]])  # noqa: PTH119
        best = max((c for c in self.outputs if line.startswith(c)), key=len, default=None)
        if best is None:
            return None
        output = self.outputs[best]
        return Result(1, output[1:]) if output.startswith("!") else Result(0, output)
