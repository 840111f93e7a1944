"""Shared libraries for tests of probes: the headers of a library, and no code."""

from __future__ import annotations

import struct

import msgspec

from kbtools.doctor import elf

BASE = 0x1000


class LibrarySpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a planted library says about itself."""

    soname: str = ""
    needed: tuple[str, ...] = ()
    rpath: str = ""
    runpath: str = ""
    defines: tuple[str, ...] = ()
    undefined: tuple[str, ...] = ()
    needs_versions: dict[str, tuple[str, ...]] = {}
    """Name of a library → versions of symbols."""
    defines_versions: tuple[str, ...] = ()
    text: str = ""
    """Bytes that stand in the file, as the constants of a real library do."""


class Strings:
    """A string table that grows."""

    def __init__(self) -> None:
        self.content = b"\0"

    def add(self, text: str) -> int:
        """Where a text stands in the table."""
        at = len(self.content)
        self.content += text.encode() + b"\0"
        return at


def content_of(spec: LibrarySpec) -> bytes:
    """The bytes of a 64-bit little-endian library; one segment holds the whole file."""
    strings = Strings()
    tags: list[tuple[int, int]] = [(elf.NEEDED, strings.add(name)) for name in spec.needed]
    named = ((elf.SONAME, spec.soname), (elf.RPATH, spec.rpath), (elf.RUNPATH, spec.runpath))
    tags += [(tag, strings.add(name)) for tag, name in named if name]
    symbols, hashes = _symbols(spec, strings)
    needs = _needed_versions(spec, strings)
    defines = _defined_versions(spec, strings)
    parts = {
        elf.STRTAB: strings.content,
        elf.SYMTAB: symbols,
        elf.GNU_HASH: hashes,
        elf.VERNEED: needs,
        elf.VERDEF: defines,
    }
    body, at = b"", BASE
    for tag, content in parts.items():
        if content:
            tags.append((tag, at))
            padded = content + b"\0" * (-len(content) % 16)
            body, at = body + padded, at + len(padded)
    if needs:
        tags.append((elf.VERNEEDNUM, len(spec.needs_versions)))
    if defines:
        tags.append((elf.VERDEFNUM, len(spec.defines_versions)))
    dynamic = b"".join(struct.pack("<QQ", *tag) for tag in [*tags, (0, 0)])
    text = spec.text.encode()
    size = len(body) + len(dynamic) + len(text)
    header = b"\x7fELF\x02\x01\x01" + b"\0" * 9
    header += struct.pack("<HHIQQQIHHHHHH", 3, 62, 1, 0, 64, 0, 0, 64, 56, 2, 0, 0, 0)
    load = struct.pack("<IIQQQQQQ", 1, 4, BASE, BASE, BASE, size, size, 1)
    place = BASE + len(body)
    dynamics = struct.pack("<IIQQQQQQ", 2, 4, place, place, place, len(dynamic), len(dynamic), 8)
    front = header + load + dynamics
    return front + b"\0" * (BASE - len(front)) + body + dynamic + text


def _symbols(spec: LibrarySpec, strings: Strings) -> tuple[bytes, bytes]:
    """The symbols, undefined ones first, and a hash table with one bucket and an open filter."""
    table = b"\0" * 24
    for name in spec.undefined:
        table += struct.pack("<IBBHQQ", strings.add(name), 0x10, 0, 0, 0, 0)
    first = 1 + len(spec.undefined)
    chains = b""
    for number, name in enumerate(spec.defines):
        table += struct.pack("<IBBHQQ", strings.add(name), 0x12, 0, 1, BASE, 0)
        digest = 5381
        for byte in name.encode():
            digest = (digest * 33 + byte) & 0xFFFFFFFF
        is_last = number == len(spec.defines) - 1
        chains += struct.pack("<I", (digest & ~1) | is_last)
    head = struct.pack("<IIII", 1, first, 1, 6) + b"\xff" * 8
    return table, head + struct.pack("<I", first if spec.defines else 0) + chains


def _needed_versions(spec: LibrarySpec, strings: Strings) -> bytes:
    content = b""
    for name, versions in spec.needs_versions.items():
        size = 16 + 16 * len(versions)
        following = 0 if name == list(spec.needs_versions)[-1] else size
        content += struct.pack("<HHIII", 1, len(versions), strings.add(name), 16, following)
        for number, version in enumerate(versions):
            step = 16 if number < len(versions) - 1 else 0
            content += struct.pack("<IHHII", 0, 0, 0, strings.add(version), step)
    return content


def _defined_versions(spec: LibrarySpec, strings: Strings) -> bytes:
    content = b""
    for number, version in enumerate(spec.defines_versions):
        following = 28 if number < len(spec.defines_versions) - 1 else 0
        content += struct.pack("<HHHHIII", 1, 0, number + 1, 1, 0, 20, following)
        content += struct.pack("<II", strings.add(version), 0)
    return content
