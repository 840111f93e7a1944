"""What a verdict looks like in a table: a mark, its colour, its words and its log."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from kbtools.evidence.board import BLANK, CONTRADICTED, FAILS, REPORTED, WORKS, Cell
from kbtools.evidence.state import Observation
from kbtools.evidence.verdicts import GREEN, RED, VerdictName
from kbtools.site.model import ArticleView, logs_path
from kbtools.site.pages.frame import Frame
from kbtools.toolchains.model import Toolchain

OTHER = "?"
KINDS = {
    FAILS: "fails",
    WORKS: "works",
    CONTRADICTED: "contradicted",
    REPORTED: "reported",
    BLANK: "blank",
    OTHER: "other",
}
SIGNS = (CONTRADICTED, FAILS, WORKS, OTHER)
FAILED = (VerdictName.REPRODUCED, VerdictName.NO_HELP, VerdictName.HOLDS_NOT)


class Mark(msgspec.Struct, frozen=True):
    """A cell: `sign` as in the legend, `kind` for its colour, `words` for a screen reader."""

    sign: str
    kind: str
    words: str
    url: str = ""
    label: str = ""
    """The text above or before it."""


def sign_of(name: VerdictName) -> str:
    """✗ where it failed as documented, ✓ where it passed as claimed, ! where a claim is red."""
    if name in RED:
        return CONTRADICTED
    if name in GREEN:
        return FAILS if name in FAILED else WORKS
    return OTHER


def of_run(frame: Frame, observation: Observation) -> Mark:
    """The mark of one run of one snippet."""
    sign = sign_of(observation.verdict.name)
    words = frame.words(f"verdict.{observation.verdict.name}") + compiled(frame, observation)
    return Mark(
        sign, KINDS[sign], words, frame.to(logs_path(frame.model, observation, frame.language))
    )


def of_cell(frame: Frame, view: ArticleView, cell: Cell, toolchain: Toolchain) -> Mark:
    """The mark of an article on a toolchain, with a link to the log of a run.

    Args:
        frame: of the page that shows the mark.
        view: the article.
        cell: of the article on the toolchain.
        toolchain: whose runs are linked.
    """
    kind = KINDS[cell.mark]
    run = telling(view, cell, toolchain) if cell.verdicts else None
    url = frame.to(logs_path(frame.model, run, frame.language)) if run else ""
    words = frame.words(f"mark.{kind}") + (compiled(frame, run) if run else "")
    return Mark(cell.mark, kind, words, url)


def compiled(frame: Frame, observation: Observation) -> str:
    """What a run compiled for, where no GPU of its machine ran it; empty for all others."""
    targets = observation.row.outcome.targets
    if not targets or observation.snippet.gpus:
        return ""
    return f"; {frame.words('logs.compiled-for', what=', '.join(targets))}"


def telling(view: ArticleView, cell: Cell, toolchain: Toolchain) -> Observation | None:
    """A run on a toolchain with the verdict of its cell, else its first run; None without runs."""
    observed = view.by_toolchain.get(toolchain.identity, ())
    verdict = {FAILS: "reproduced", WORKS: "resolved"}.get(cell.mark, "")
    return next(
        (
            observation
            for observation in observed
            if observation.verdict.name == verdict
            or (cell.mark == CONTRADICTED and observation.verdict.colour == "red")
        ),
        observed[0] if observed else None,
    )


def counted(frame: Frame, observed: Iterable[Observation]) -> list[Mark]:
    """The verdicts of a snippet, each with its number of runs."""
    times: dict[VerdictName, int] = {}
    for observation in observed:
        times[observation.verdict.name] = times.get(observation.verdict.name, 0) + 1
    return [
        Mark(
            sign_of(name),
            KINDS[sign_of(name)],
            frame.words("article.verdicts-on", verdict=frame.words(f"verdict.{name}"), n=n),
        )
        for name, n in sorted(times.items(), key=lambda item: SIGNS.index(sign_of(item[0])))
    ]
