"""What a thread, a source or a page reports and no run here has shown: receipts, and bounds."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from kbtools.articles.receipt_grammar import FIELD

Receipts = Annotated[str, Meta(pattern=FIELD)]
"""What stands behind a statement: one receipt, or several joined by a comma."""


class ReportedBound(msgspec.Struct, frozen=True):
    """An end of a range in `affected` that no run here measured, and what reports it."""

    bound: Annotated[str, Meta(min_length=1)]
    """As in `triton<3.6`: a name and one clause of its range."""
    receipt: Receipts
    basis: Literal["reported"] = "reported"
