"""What runs make of a notice: reported, seen to fail here, or measured at every bound."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from kbtools.articles.notices import Notice
from kbtools.config import Config
from kbtools.evidence import store
from kbtools.evidence.bounds import Bound, bounds_of_base
from kbtools.evidence.state import ArticleState, judge_rows, state_from

Standing = Literal["reported", "seen", "measured"]
"""`reported`: nobody ran it here; `seen`: a run here failed as reported; `measured`: and runs stand
on both sides of every bound of its window."""


def bounds_of_notice(notice: Notice, config: Config) -> tuple[Bound, ...]:
    """The bounds of a notice with the runs that stand behind them; none without snippets.

    Raises:
        EvidenceError: its evidence cannot be read.
    """
    return reported_or_measured(notice, config) if notice.snippets else ()


def reported_or_measured(notice: Notice, config: Config) -> tuple[Bound, ...]:
    """The bounds of a notice, each with the runs, or else the thread, that stand behind it.

    Raises:
        EvidenceError: its evidence cannot be read.
    """
    rows = store.read(config.evidence, notice.id) if notice.snippets else ()
    return bounds_of_base([notice.article], {notice.id: rows})


def standing_from(state: ArticleState, bounds: Sequence[Bound]) -> Standing:
    """What a notice is worth.

    Args:
        state: Of its snippets' runs.
        bounds: Of its window.
    """
    if state.word != "reproduced":
        return "reported"
    own = [bound for bound in bounds if not bound.snippet]
    is_measured = bool(own) and all(bound.steps for bound in own)
    return "measured" if is_measured else "seen"


def standing_of(notice: Notice, config: Config) -> Standing:
    """What a notice is worth, by its evidence.

    Raises:
        EvidenceError: its evidence cannot be read.
    """
    if not notice.snippets:
        return "reported"
    observed = judge_rows(notice.article, store.read(config.evidence, notice.id))
    return standing_from(state_from(notice.article, observed), bounds_of_notice(notice, config))
