"""What a shared library says about itself: its name, what it needs, what it has.

Reads 64-bit little-endian ELF files, which those of Linux on x86-64 and aarch64 are, by their
program headers alone: section headers may be stripped.
"""

from __future__ import annotations

import mmap
import re
import struct
from typing import Dict, Iterator, List, NamedTuple, Optional, Set, Tuple

NEEDED, HASH, STRTAB, SYMTAB, SONAME, RPATH, RUNPATH = 1, 4, 5, 6, 14, 15, 29
GNU_HASH, VERDEF, VERDEFNUM, VERNEED, VERNEEDNUM = (
    0x6FFFFEF5,
    0x6FFFFFFC,
    0x6FFFFFFD,
    0x6FFFFFFE,
    0x6FFFFFFF,
)
"""Tags of the dynamic section, as in the System V ABI and its GNU extensions."""


class Symbol(NamedTuple):
    """A symbol that a library needs from another one."""

    name: str
    weak: bool


class Library:
    """A shared library; close it after use."""

    def __init__(self, path: str) -> None:
        """Opens a file.

        Raises:
            OSError: it cannot be opened.
            ValueError: it is not such a library.
        """
        with open(path, "rb") as file:
            self._data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        try:
            if self._data[:6] != b"\x7fELF\x02\x01":
                raise ValueError(f"{path}: no 64-bit little-endian ELF file")
            self._segments, dynamic = self._headers()
            self._tags = self._dynamic(dynamic)
        except (struct.error, IndexError, OverflowError) as error:  # cut off, or of another kind
            self._data.close()
            raise ValueError(f"{path}: {error}") from error
        except ValueError:
            self._data.close()
            raise

    def close(self) -> None:
        """Lets go of the file."""
        self._data.close()

    def _headers(self) -> Tuple[List[Tuple[int, int, int]], Tuple[int, int]]:
        offset, size, count = (
            struct.unpack_from("<Q", self._data, 32)[0],
            *struct.unpack_from("<HH", self._data, 54),
        )
        segments, dynamic = [], (0, 0)
        for number in range(count):
            kind, _, place, address, _, length = struct.unpack_from(
                "<IIQQQQ", self._data, offset + number * size
            )
            if kind == 1:
                segments.append((address, place, length))
            elif kind == 2:
                dynamic = (place, length)
        return segments, dynamic

    def _dynamic(self, place: Tuple[int, int]) -> Dict[int, List[int]]:
        tags: Dict[int, List[int]] = {}
        for offset in range(place[0], place[0] + place[1], 16):
            tag, value = struct.unpack_from("<QQ", self._data, offset)
            if not tag:
                break
            tags.setdefault(tag, []).append(value)
        return tags

    def _offset(self, address: int) -> int:
        for start, place, length in self._segments:
            if start <= address < start + length:
                return place + address - start
        raise ValueError(f"no segment has the address {address:#x}")

    def _text(self, at: int) -> str:
        start = self._offset(self._tags[STRTAB][0]) + at
        end = self._data.find(b"\0", start)
        return self._data[start:end].decode("utf-8", "replace")

    def _texts(self, tag: int) -> List[str]:
        return [self._text(value) for value in self._tags.get(tag, ())]

    @property
    def soname(self) -> str:
        """The name by which others need it; empty if it has none."""
        return "".join(self._texts(SONAME))

    @property
    def needed(self) -> List[str]:
        """The names of the libraries that it needs."""
        return self._texts(NEEDED)

    @property
    def rpath(self) -> List[str]:
        """Folders that are searched before `LD_LIBRARY_PATH`, `$ORIGIN` among them."""
        return [folder for text in self._texts(RPATH) for folder in text.split(":") if folder]

    @property
    def runpath(self) -> List[str]:
        """Folders that are searched after `LD_LIBRARY_PATH`, `$ORIGIN` among them."""
        return [folder for text in self._texts(RUNPATH) for folder in text.split(":") if folder]

    def needed_versions(self) -> Dict[str, Set[str]]:
        """Name of a library → the versions of symbols that are needed of it."""
        result: Dict[str, Set[str]] = {}
        if VERNEED not in self._tags:
            return result
        place = self._offset(self._tags[VERNEED][0])
        for _ in range(self._tags[VERNEEDNUM][0]):
            _, count, name, first, following = struct.unpack_from("<HHIII", self._data, place)
            versions = result.setdefault(self._text(name), set())
            at = place + first
            for _ in range(count):
                _, flags, _, text, step = struct.unpack_from("<IHHII", self._data, at)
                if not flags & 2:  # VER_FLG_WEAK
                    versions.add(self._text(text))
                at += step
            place += following
        return result

    def defined_versions(self) -> Set[str]:
        """The versions of symbols that it defines."""
        result: Set[str] = set()
        if VERDEF not in self._tags:
            return result
        place = self._offset(self._tags[VERDEF][0])
        for _ in range(self._tags[VERDEFNUM][0]):
            first, following = struct.unpack_from("<II", self._data, place + 12)
            result.add(self._text(struct.unpack_from("<I", self._data, place + first)[0]))
            place += following
        return result

    def undefined(self) -> Iterator[Symbol]:
        """The symbols that it needs from others."""
        if SYMTAB not in self._tags:
            return
        table = self._offset(self._tags[SYMTAB][0])
        if GNU_HASH in self._tags:  # the symbols in front of the hashed ones are undefined
            count = struct.unpack_from("<I", self._data, self._offset(self._tags[GNU_HASH][0]) + 4)[
                0
            ]
        elif HASH in self._tags:
            count = struct.unpack_from("<I", self._data, self._offset(self._tags[HASH][0]) + 4)[0]
        else:
            return
        for number in range(1, count):
            name, info, _, section = struct.unpack_from("<IBBH", self._data, table + number * 24)
            if not section and name:
                yield Symbol(self._text(name), info >> 4 == 2)

    def defines(self, name: str) -> Optional[bool]:
        """Whether it has a symbol for others; None if it has no hash table to look it up in."""
        if GNU_HASH not in self._tags or SYMTAB not in self._tags:
            return None
        encoded = name.encode()
        digest = 5381
        for byte in encoded:
            digest = (digest * 33 + byte) & 0xFFFFFFFF
        table = self._offset(self._tags[GNU_HASH][0])
        buckets, first, words, shift = struct.unpack_from("<IIII", self._data, table)
        word = struct.unpack_from("<Q", self._data, table + 16 + 8 * ((digest >> 6) % words))[0]
        if not (word >> (digest & 63)) & (word >> ((digest >> shift) & 63)) & 1:
            return False
        start = table + 16 + 8 * words
        number = struct.unpack_from("<I", self._data, start + 4 * (digest % buckets))[0]
        if number < first:
            return False
        chains, symbols = start + 4 * buckets, self._offset(self._tags[SYMTAB][0])
        strings = self._offset(self._tags[STRTAB][0])
        while True:
            hashed = struct.unpack_from("<I", self._data, chains + 4 * (number - first))[0]
            if hashed | 1 == digest | 1:
                at, _, _, section = struct.unpack_from("<IBBH", self._data, symbols + number * 24)
                begin = strings + at
                if section and self._data[begin : begin + len(encoded) + 1] == encoded + b"\0":
                    return True
            if hashed & 1:
                return False
            number += 1

    def search(self, pattern: bytes) -> bytes:
        """The first bytes of the file that match a regular expression; empty if none do."""
        match = re.search(pattern, self._data)
        return match[0] if match else b""
