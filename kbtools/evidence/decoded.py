"""Evidence files that this process has decoded, so that each is decoded once.

`kbtools check` asks for the rows of every article in several rules, and `kbtools verify` once for
each snippet.
"""

from __future__ import annotations

import os
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from kbtools.cache import FileState, is_settled, state_of
from kbtools.evidence.rows import Row

LIMIT = 32 << 20
"""Bytes of files whose rows are kept; the rows take about twice as much memory."""


class _Decoded(NamedTuple):
    version: FileState
    size: int
    """Bytes of the file."""
    rows: tuple[Row, ...]


class DecodedFiles:
    """The rows of files, decoded again when a file has changed, by whichever process.

    May be used by several threads. The files that were used least recently are dropped once all
    of them have more than `limit` bytes.
    """

    def __init__(self, decode: Callable[[bytes, str], tuple[Row, ...]], limit: int = LIMIT) -> None:
        self._decode, self._limit = decode, limit
        self._files: OrderedDict[Path, _Decoded] = OrderedDict()
        self._size = 0
        self._lock = threading.Lock()

    def rows(self, file: Path) -> tuple[Row, ...]:
        """The rows that a file holds now.

        Raises:
            OSError: it cannot be read.
            EvidenceError: a line is not a row.
        """
        version = state_of(file.stat())
        with self._lock:
            decoded = self._files.get(file)
            if decoded and decoded.version == version:
                self._files.move_to_end(file)
                return decoded.rows
        # the version is that of the content: a writer renames a new file into place
        with file.open("rb") as stream:
            status = os.fstat(stream.fileno())
            content = stream.read()
        rows = self._decode(content, str(file))
        if is_settled(state_of(status), time.time_ns()):
            self._keep(file, _Decoded(state_of(status), len(content), rows))
        return rows

    def _keep(self, file: Path, decoded: _Decoded) -> None:
        with self._lock:
            self._size += decoded.size
            if older := self._files.pop(file, None):
                self._size -= older.size
            self._files[file] = decoded
            while self._size > self._limit:
                _, dropped = self._files.popitem(last=False)
                self._size -= dropped.size
