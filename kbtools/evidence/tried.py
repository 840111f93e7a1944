"""How far a claim was tried: outside of that, whoever asks is told that nobody knows."""

from __future__ import annotations

from collections.abc import Iterable

from kbtools.articles.model import ABSENT, Affected, Article
from kbtools.evidence.bounds import Bound
from kbtools.toolchains.affected import parse_range

ENDS_BELOW, ENDS_ABOVE = (">=", ">", "==", "~="), ("<", "<=", "==", "~=")
"""Operators of clauses that leave out what is older, and what is newer."""


def tried_ranges(article: Article, bounds: Iterable[Bound]) -> Affected:
    """For each alternative of `affected`, name → the versions of which something is known.

    A bound that is measured or reported decides all versions beyond it, and the range then has no
    end on that side. Otherwise it ends with the oldest or the newest version that was tried: of an
    older or a newer one the article says nothing. A name that was never tried is left out.

    Args:
        article: The article.
        bounds: All of its bounds, those of its fences, too.
    """
    of_article = [bound for bound in bounds if not bound.snippet]
    ranges: list[dict[str, str]] = []
    for i, alternative in enumerate(article.matter.affected):
        ends: dict[str, str] = {}
        for name in alternative:
            own = [b for b in of_article if b.alternative == i and b.name == name]
            if text := _range_of(own):
                ends[name] = text
        ranges.append(ends)
    return tuple(ranges) if any(ranges) else ()


def _range_of(bounds: list[Bound]) -> str:
    """The range of one name; empty if it has no end, or nothing was tried."""
    versions = [trial.version for bound in bounds[:1] for trial in bound.tried]
    if not versions or ABSENT in versions:
        return ""
    decided = [bound.clause for bound in bounds if bound.standing != "open"]
    parts = []
    if not any(operator_of(clause) in ENDS_BELOW for clause in decided):
        parts.append(f">={versions[0]}")
    if not any(operator_of(clause) in ENDS_ABOVE for clause in decided):
        parts.append(f"<={versions[-1]}")
    return ",".join(parts)


def operator_of(clause: str) -> str:
    """The operator of a clause, as `<` of `<2.6`."""
    [part] = parse_range(clause)
    return part.operator
