"""The bounds of claims, a line for each, and as JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from kbtools.evidence.bounds import Bound


class _Entry(msgspec.Struct, frozen=True):
    """A bound, with what follows from it in words."""

    article: str
    snippet: str
    bound: str
    standing: str
    steps: list[dict[str, object]]
    oldest_tried: str
    newest_tried: str
    receipt: str
    missing: str


class _Document(msgspec.Struct, frozen=True):
    schema: int
    bounds: list[_Entry]


def lines(bounds: Iterable[Bound]) -> Iterator[str]:
    """As in `KB0001     torch<2.6   measured  2.5.1 | 2.6.0`."""
    for bound in bounds:
        place = f"{bound.article}/{bound.snippet}" if bound.snippet else bound.article
        yield f"{place:<11} {bound.text:<32} {bound.standing:<9} {standing(bound)}".rstrip()


def standing(bound: Bound) -> str:
    """What stands behind a bound, or what is missing, in a few words."""
    if bound.standing == "reported":
        return bound.receipt
    if bound.standing == "open":
        return f"needs {bound.missing}; {bound.span}"
    return "; ".join(
        f"{step.below} | {step.above}"
        + (f", not tried between: {', '.join(step.untried)}" if step.untried else "")
        for step in bound.steps
    )


def summary(bounds: Sequence[Bound]) -> str:
    """As in `87 bounds: 80 measured, 4 reported, 3 open`."""
    count = Counter(bound.standing for bound in bounds)
    parts = ", ".join(f"{count[word]} {word}" for word in ("measured", "reported", "open"))
    return f"{len(bounds)} bound{'s' * (len(bounds) != 1)}: {parts}"


def as_json(bounds: Iterable[Bound]) -> bytes:
    """`{"schema": 1, "bounds": [{"article", "bound", "standing", …}]}`."""
    entries = [
        _Entry(
            bound.article,
            bound.snippet,
            bound.text,
            bound.standing,
            [msgspec.to_builtins(step) for step in bound.steps],
            bound.tried[0].version if bound.tried else "",
            bound.tried[-1].version if bound.tried else "",
            bound.receipt,
            bound.missing,
        )
        for bound in bounds
    ]
    return msgspec.json.format(msgspec.json.encode(_Document(1, entries)), indent=1) + b"\n"
