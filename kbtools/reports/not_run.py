"""The snippets of a run that have no conclusion, by reason: counted, or listed on demand."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from kbtools.evidence.verdicts import VerdictName
from kbtools.verification.model import Result

MOST = 8
"""Reasons that a report for people counts one by one; the others are one number."""


class NotConcluded(msgspec.Struct, frozen=True):
    """The snippets that share a grey verdict and its reason."""

    verdict: VerdictName
    reason: str
    snippets: tuple[str, ...]

    @property
    def is_listed(self) -> bool:
        """Whether its snippets are named unasked: they ran, and somebody should look at them."""
        return self.verdict is VerdictName.INCONCLUSIVE

    @property
    def names(self) -> str:
        """The names of its snippets."""
        return ", ".join(self.snippets)


def not_concluded(results: Iterable[Result]) -> tuple[NotConcluded, ...]:
    """The grey results by reason: first those that are listed, then the most frequent."""
    snippets: dict[tuple[VerdictName, str], list[str]] = {}
    for result in results:
        if result.verdict.colour == "grey":
            key = (result.verdict.name, result.verdict.reason)
            snippets.setdefault(key, []).append(result.task.snippet.name)
    groups = [NotConcluded(name, reason, tuple(of)) for (name, reason), of in snippets.items()]
    groups.sort(key=lambda group: (not group.is_listed, -len(group.snippets), group.reason))
    return tuple(groups)


def most_frequent(
    groups: tuple[NotConcluded, ...],
) -> tuple[tuple[NotConcluded, ...], tuple[NotConcluded, ...]]:
    """Those that are counted one by one, and the others."""
    listed = sum(group.is_listed for group in groups)
    return groups[: listed + MOST], groups[listed + MOST :]
