"""For people: the failures that are known for some versions, as lines of text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from click import style

if TYPE_CHECKING:
    from kbtools.matching.known import Known, KnownFailure


def known(answer: Known, top: int, addresses: dict[str, str]) -> str:
    """The failures, or that none is known.

    Args:
        answer: What is known.
        top: How many failures are printed.
        addresses: Id → where to read on.
    """
    question = ", ".join(f"{name} {version}" for name, version in answer.packages.items())
    question += f", sm {answer.sm}" if answer.sm else ""
    blocks = ["\n".join(_failure(f, addresses[f.id])) for f in answer.failures[:top]]
    rest = len(answer.failures) - top
    if rest > 0:
        blocks.append(f"and {rest} more: --top {len(answer.failures)}")
    if not blocks:
        blocks.append(f"none: no failure is known here for {question}; that is no proof of health")
    if answer.not_mentioned:
        blocks.append(f"nothing here is about: {', '.join(answer.not_mentioned)}")
    if answer.meant:
        blocks.append(f"did you mean: {', '.join(answer.meant.values())}")
    return "\n\n".join(blocks)


def standing(failure: KnownFailure) -> str:
    """What stands behind a failure, in words."""
    if failure.standing == "executed":
        return "executed here: an article with runs"
    if failure.standing == "measured":
        return f"reported (looked up on {failure.looked_up}), and measured here"
    if failure.standing == "seen":
        return f"reported (looked up on {failure.looked_up}), and seen to fail here"
    return f"reported, not run here; looked up on {failure.looked_up}"


def _failure(failure: KnownFailure, address: str) -> Iterator[str]:
    doubt = "  (may apply)" if failure.answer == "unknown" else ""
    yield f"{style(failure.id, bold=True)}  {failure.title}{style(doubt, fg='yellow')}"
    yield f"  {failure.severity}; {standing(failure)}"
    yield f"  your versions {failure.reason}; fails on {failure.window}"
    if failure.hardware:
        yield f"  hardware      {failure.hardware}"
    yield f"  what helps    {failure.what_helps}"
    if failure.receipts:
        yield f"  receipts      {', '.join(failure.receipts)}"
    yield f"  read on       {address}"
