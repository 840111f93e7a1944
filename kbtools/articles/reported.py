"""What a thread, a source or a page reports and no run here has shown: receipts, and bounds."""

from __future__ import annotations

import re
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

_REPOSITORY = r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*"
_THREAD = rf"{_REPOSITORY}#[1-9]\d*"
_SOURCE = rf"{_REPOSITORY}@[\w.+-]+( [\w./+-]+(:[1-9]\d*)?)?"
_PAGE = r"https://[^\s,]+"
_RECEIPT = rf"({_THREAD}|{_SOURCE}|{_PAGE})"
RECEIPT = re.compile(_RECEIPT)
"""One receipt: `owner/repo#12`, `owner/repo@tag path:line`, or an address of documentation."""

Receipts = Annotated[str, Meta(pattern=rf"^{_RECEIPT}(, {_RECEIPT})*$")]
"""What stands behind a statement: one receipt, or several joined by a comma."""


class ReportedBound(msgspec.Struct, frozen=True):
    """An end of a range in `affected` that no run here measured, and what reports it."""

    bound: Annotated[str, Meta(min_length=1)]
    """As in `triton<3.6`: a name and one clause of its range."""
    receipt: Receipts
    basis: Literal["reported"] = "reported"
