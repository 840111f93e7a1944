"""Hits, ranked → the matches that a diagnosis gives: whether they apply, and what to add.

The twin of this module is `site/assets/matching/matches.js`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

import msgspec

from kbtools.matching.cleaning import Log
from kbtools.matching.first import FirstFailure
from kbtools.matching.hits import Hit, LineKind, NearText, has_exception
from kbtools.matching.index import IndexEntry, Standing
from kbtools.matching.rules import TELLING
from kbtools.toolchains.affected import MissingVersion, UndecidedVersion, is_affected
from kbtools.toolchains.model import Toolchain

Affectedness = Literal["affected", "not affected", "unknown"]


class Match(msgspec.Struct, frozen=True):
    """An article whose failure a log shows, and the evidence for that."""

    id: str
    title: str
    summary: str
    line: int
    """Of the log, from 1."""
    text: str
    """That line."""
    signature: str
    """What matched: the regular expression, or the literal."""
    affected: Affectedness
    """On the versions that the log shows."""
    reason: str
    """Why it is affected, or not, or unknown."""
    confident: bool
    """Nothing speaks against it: good enough to answer with nobody looking."""
    hints: tuple[str, ...] = ()
    """What the reader can check or add, to be more certain of the answer."""
    tied: tuple[str, ...] = ()
    """Articles for which the log speaks as much: nothing in it decides which is right."""
    retired: bool = False
    standing: Standing = "executed"
    """`reported` for a notice: nobody ran it here, and it is never sure."""
    looked_up: str = ""
    """Of a notice: the day on which its threads were read."""


class Claim(msgspec.Struct, frozen=True):
    """Whether an article's `affected` holds for the versions that a log shows, and why."""

    affected: Affectedness
    reason: str
    shows_versions: bool = False
    """Whether it is unknown although the log shows the versions."""
    has_cause: bool = False
    """Whether a probe of the doctor found the article's cause on the reader's machine."""


def claim_of(entry: IndexEntry, toolchain: Toolchain) -> Claim:
    """Whether the reader's versions are affected, and why."""
    if not entry.affected:
        return Claim("affected", "it fails on every version")
    conditions = " or ".join(
        " and ".join(f"any {n}" if span == "*" else f"{n} {span}" for n, span in condition.items())
        for condition in entry.affected
    )
    conditions += " is reported" if entry.standing == "reported" else " is affected"
    if entry.sm:
        conditions += f", on sm {entry.sm}"
        if is_affected(({"sm": entry.sm},), toolchain) is False:
            return Claim(
                "not affected", f"{conditions}; the log shows sm {toolchain.version('sm')}"
            )
    answer = is_affected(entry.affected, toolchain, entry.tried)
    if isinstance(answer, MissingVersion):
        return Claim("unknown", f"{conditions}; the log shows no version of {answer.name}")
    if isinstance(answer, UndecidedVersion):
        return Claim("unknown", f"{conditions}; {answer.reason}", shows_versions=True)
    names = _names(entry)
    if not answer and "gpus" in names:
        return Claim("unknown", f"{conditions}; a log does not show how many GPUs there are")
    versions = ((name, toolchain.version(name)) for name in names)
    listed = ", ".join(f"{name} {version}" for name, version in versions if version)
    return Claim("affected" if answer else "not affected", f"{conditions}; the log shows {listed}")


def rank(hit: Hit, claim: Claim, log: Log) -> tuple[object, ...]:
    """The key by which the hits of different articles are sorted, best first.

    `claim` is that of the hit's article; `log` is the log in which the hit is. Of two hits on the
    same line the one comes first whose cause the doctor found; then an article comes before what
    is only reported, then the one whose `near` occurs.
    """
    return (*_merit(hit, claim, log), hit.entry.id)


def _merit(hit: Hit, claim: Claim, log: Log) -> tuple[object, ...]:
    """How much a log speaks for a hit's article; the smaller, the more."""
    return (
        hit.signature.wraps,
        claim.affected == "not affected",
        hit.kind,
        log.line_index(hit.offset),
        not claim.has_cause,
        hit.entry.standing == "reported",
        hit.near,
        -hit.texts,
        hit.signature.regex is None,
        -len(hit.signature.literal),
    )


def match_of(
    hit: Hit,
    claims: Mapping[str, Claim],
    log: Log,
    ranked: Sequence[Hit],
    first: FirstFailure | None,
) -> Match:
    """The match of a hit.

    `claims` has the claim of each article that was hit; `ranked` are all hits in the log, best
    first; `first` is what failed first in it.
    """
    entry, signature = hit.entry, hit.signature
    claim = claims[entry.id]
    merit = _merit(hit, claim, log)
    tied = tuple(
        rival.entry.id
        for rival in ranked
        if rival is not hit and _merit(rival, claims[rival.entry.id], log) == merit
    )
    doubts = tuple(_doubts(hit, claims, log, ranked, tied, first))
    if not doubts and hit is ranked[0]:
        doubts = tuple(_lacks(hit, log))
    return Match(
        id=entry.id,
        title=entry.title,
        summary=entry.summary,
        line=log.line_number(hit.offset),
        text=log.excerpt(hit.offset).strip(),
        signature=signature.regex or signature.literal,
        affected=claim.affected,
        reason=claim.reason,
        confident=hit is ranked[0] and not doubts and not entry.retired,
        hints=(*doubts, *_wishes(entry, claim)),
        tied=tied,
        retired=entry.retired,
        standing=entry.standing,
        looked_up=entry.looked_up,
    )


def _lacks(hit: Hit, log: Log) -> Iterator[str]:
    """What is missing in the evidence for a hit."""
    if hit.kind is LineKind.OUTPUT:
        yield "this line does not say that it is an error: compare the log with the Symptom"
    elif hit.kind is LineKind.WARNING and has_exception(log):
        yield "this line only warns, and the log shows an exception"
    if hit.signature.regex is None and len(hit.signature.literal) < TELLING:
        yield "the text is short: compare the log with the Symptom"


def recognised(match: Match) -> FirstFailure | None:
    """The line of an article's failure, in a log whose other lines read as no failure at all."""
    if not match.confident:
        return None
    return FirstFailure(match.line, match.text, "", "error", (), confident=True, why="")


def _doubts(
    hit: Hit,
    claims: Mapping[str, Claim],
    log: Log,
    ranked: Sequence[Hit],
    tied: Sequence[str],
    first: FirstFailure | None,
) -> Iterator[str]:
    """What speaks against a hit."""
    claim = claims[hit.entry.id]
    if hit.entry.standing == "reported":
        yield f"this is reported, and was not run here (looked up on {hit.entry.looked_up})"
    elif hit.entry.looked_up:
        yield f"what helps is reported, and was not run here (looked up on {hit.entry.looked_up})"
    if tied:
        yield f"a tie with {' and '.join(tied)}: nothing in this text decides which is right"
    if hit.is_cut:
        yield "the line is cut: show all of it"
    if hit.signature.wraps and first is not None and first.line != log.line_number(hit.offset):
        yield f"other failures print this text, too: line {first.line} failed first"
    elif hit.signature.wraps:
        yield "other failures print this text, too: look for the first error above it"
    elif hit.signature.shared and hit.near is NearText.NOT_REQUIRED:
        yield "other failures print this text, too: compare the log with the article's Symptom"
    if first is not None and hit.only_noticed and hit.near is not NearText.PRESENT:
        who = f"{first.process} failed first" if first.process else "another failure came first"
        yield f"{who}: line {first.line}; this line may only follow from that"
    if hit.kind is LineKind.DEALT_WITH:
        yield "the log says that the program went on: look for a later error"
    if claim.affected == "not affected":
        where = "outside what is reported" if hit.entry.looked_up else "not affected"
        yield f"the versions in the log are {where} ({claim.reason})"
    line = log.line_index(hit.offset)
    rivals = [
        rival.entry.id
        for rival in ranked
        if rival is not hit
        and rival.entry.id not in tied
        and log.line_index(rival.offset) == line
        and rival.near <= hit.near
        and (claims[rival.entry.id].has_cause or not claim.has_cause)
    ]
    if rivals:
        verb, owner = ("prints", "its") if len(rivals) == 1 else ("print", "their")
        yield f"{' and '.join(rivals)} {verb} the same line: {owner} Symptom tells them apart"
    elif hit.entry.confusable and hit.near is NearText.ABSENT:
        rivals = list(hit.entry.confusable)
        owner = "its" if len(rivals) == 1 else "their"
        yield f"{' and '.join(rivals)} may print this, too: {owner} Symptom tells them apart"
    elif hit.near is NearText.ABSENT:
        yield "other failures print this text, too: compare the log with the article's Symptom"


def _wishes(entry: IndexEntry, claim: Claim) -> Iterator[str]:
    """What the log could show more of."""
    if claim.affected == "unknown" and not claim.shows_versions:
        names = " and ".join(_names(entry))
        yield f"add the version of {names} (the output of `pip list`, say)"


def _names(entry: IndexEntry) -> list[str]:
    """The names in an article's `affected`."""
    return sorted({name for condition in entry.affected for name in condition})
