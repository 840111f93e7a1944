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
FAILED = (VerdictName.REPRODUCED, VerdictName.NO_HELP)


class Mark(msgspec.Struct, frozen=True):
    """A cell: `sign` as in the legend, `kind` for its colour, `words` for who cannot see it."""

    sign: str
    kind: str
    words: str
    url: str = ""
    label: str = ""
    """What stands above or before it."""


def sign_of(name: VerdictName) -> str:
    """✗ where it failed as documented, ✓ where it passed as claimed, ! where a claim is red."""
    if name in RED:
        return CONTRADICTED
    if name in GREEN:
        return FAILS if name in FAILED else WORKS
    return OTHER


def of_run(frame: Frame, one: Observation) -> Mark:
    """The mark of one run of one snippet."""
    sign = sign_of(one.verdict.name)
    words = frame.words(f"verdict.{one.verdict.name}")
    return Mark(sign, KINDS[sign], words, frame.to(logs_path(frame.model, one, frame.language)))


def of_cell(frame: Frame, view: ArticleView, found: Cell, toolchain: Toolchain) -> Mark:
    """The mark of an article on a toolchain, with a link to the run that it rests on."""
    kind = KINDS[found.mark]
    run = telling(view, found, toolchain) if found.verdicts else None
    url = frame.to(logs_path(frame.model, run, frame.language)) if run else ""
    return Mark(found.mark, kind, frame.words(f"mark.{kind}"), url)


def telling(view: ArticleView, found: Cell, toolchain: Toolchain) -> Observation | None:
    """The run on a toolchain that its cell speaks of, or any other run there."""
    here = view.by_toolchain.get(toolchain.identity, ())
    wanted = {FAILS: "reproduced", WORKS: "resolved"}.get(found.mark, "")
    return next(
        (
            one
            for one in here
            if one.verdict.name == wanted
            or (found.mark == CONTRADICTED and one.verdict.colour == "red")
        ),
        here[0] if here else None,
    )


def counted(frame: Frame, found: Iterable[Observation]) -> list[Mark]:
    """What was seen of a snippet, each verdict once, with how often."""
    times: dict[VerdictName, int] = {}
    for one in found:
        times[one.verdict.name] = times.get(one.verdict.name, 0) + 1
    return [
        Mark(
            sign_of(name),
            KINDS[sign_of(name)],
            frame.words("article.verdicts-on", verdict=frame.words(f"verdict.{name}"), n=n),
        )
        for name, n in sorted(times.items(), key=lambda item: SIGNS.index(sign_of(item[0])))
    ]
