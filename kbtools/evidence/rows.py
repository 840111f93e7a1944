"""A row of evidence: what one run of one snippet did, on which toolchain, and when."""

from __future__ import annotations

import datetime
import re
from collections.abc import Sequence

import msgspec

from kbtools.config import KbtoolsError
from kbtools.outcome import Isolation, Outcome
from kbtools.toolchains.model import Toolchain

SCHEMA = 2
"""Of the rows that are written today: the isolation of a run is recorded in its outcome."""
REFERENCE = re.compile(rb'"toolchain": ?\d')
SCHEMAS = (1, 2)
"""Of the rows that are read. Rows are never edited, so those of schema 1 stay as they are."""


class EvidenceError(KbtoolsError):
    """A file of evidence cannot be read, or one of its lines is not a row."""


class Row(msgspec.Struct, frozen=True, omit_defaults=True):
    """One stored outcome. It holds no verdict: that follows from the article's claims of today."""

    schema: int
    snippet: str
    """Id of the snippet when it was run; what counts is `code`."""
    code: str
    """`Snippet.digest` at the time."""
    toolchain: Toolchain
    outcome: Outcome
    when: datetime.datetime
    kbtools: str
    """Version that ran it."""
    helper: str = ""
    """SHA-256 of `kbtools.repro`, where the code imports it."""
    requested_isolation: Isolation | None = msgspec.field(default=None, name="isolation")
    """Schema 1 only: `spawn` where it was asked for. A fork was not written down, nor was it
    written down when the executor gave a new interpreter to a snippet that had not asked for one.
    """

    @property
    def isolation(self) -> Isolation | None:
        """How the process of a Python snippet was made; None where that was not recorded.

        In schema 2 it is None for Bash and CUDA only, which have no such process. A row of
        schema 1 with a request for `spawn` is right, since every such request was granted.
        """
        return self.outcome.isolation or self.requested_isolation

    @property
    def key(self) -> tuple[str, str]:
        """Equal for two runs of which the newer one counts."""
        return self.code, self.toolchain.identity


def decode_rows(content: bytes, file: str) -> tuple[Row, ...]:
    """The rows in the content of a file; `file` is its name in messages.

    Raises:
        EvidenceError: a line is not a row.
    """
    rows: list[Row] = []
    for number, line in enumerate(content.splitlines(), 1):
        try:
            rows.append(_decode_row(line, rows))
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, IndexError) as error:
            raise EvidenceError(f"{file}:{number}: not a row of evidence: {error}") from error
    return tuple(rows)


def _decode_row(line: bytes, above: Sequence[Row]) -> Row:
    """A row of a file, of which those above it are known.

    The extract in a wheel has each toolchain once in a file; where it recurs, a number says which
    of the rows above has it, counted from 0. Otherwise toolchains were two thirds of the extract.
    """
    if not REFERENCE.search(line):
        return msgspec.json.decode(line, type=Row)
    values = msgspec.json.decode(line)
    return msgspec.convert({**values, "toolchain": above[values["toolchain"]].toolchain}, Row)
