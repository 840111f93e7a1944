"""A log and an index → ranked articles, or none."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from enum import IntEnum
from typing import Literal

import ahocorasick_rs
import msgspec

from kbtools.articles.model import Signature
from kbtools.articles.signatures import pattern
from kbtools.matching import truncated
from kbtools.matching.cleaning import Log
from kbtools.matching.index import Index, IndexEntry
from kbtools.matching.mentions import MARK, is_dealt_with, is_mention, is_quiet
from kbtools.matching.rules import (
    CHARACTERS,
    CODE,
    ERROR,
    FRAME,
    JOINTS,
    LINES,
    LOCATION_LINE,
    MAX_OCCURRENCES,
    TELLING,
    WARNING,
)
from kbtools.matching.versions import as_toolchain, versions_of
from kbtools.toolchains.affected import MissingVersion, UndecidedVersion, is_affected
from kbtools.toolchains.model import Toolchain

_error, _warning, _code, _frame, _location_line = (
    re.compile(text, re.ASCII) for text in (ERROR, WARNING, CODE, FRAME, LOCATION_LINE)
)


SHOWN = 400
"""Characters of a line, from its beginning, that say what it is."""

Affectedness = Literal["affected", "not affected", "unknown"]


class Match(msgspec.Struct, frozen=True):
    """An article whose failure a log shows, and how that is known."""

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
    retired: bool = False


class Diagnosis(msgspec.Struct, frozen=True, kw_only=True):
    """The articles that a log speaks of, best first; none is an answer, too."""

    schema: Literal[2] = 2
    """Version of this format; docs/diagnose.md says what changed in each."""
    matches: tuple[Match, ...]
    versions: dict[str, str]
    """Name → version, as the log shows them."""
    lines: int
    """Of the log, as far as it was looked at."""


class LineKind(IntEnum):
    """What the line of a hit reads as; the smaller, the more it counts."""

    ERROR = 0
    OUTPUT = 1
    WARNING = 2
    """A warning, or an error that the program dealt with."""


class NearText(IntEnum):
    """Whether the `near` of a signature occurs in the log; the smaller, the more a hit counts."""

    PRESENT = 0
    NOT_REQUIRED = 1
    """The signature has no `near`."""
    ABSENT = 2


class Hit(msgspec.Struct, frozen=True):
    """A signature of an article at a place of a log, ranked: the smaller the better."""

    entry: IndexEntry
    signature: Signature
    at: int
    kind: LineKind
    near: NearText
    is_cut: bool = False
    """Only the beginning of its literal is there."""

    @property
    def strength(self) -> tuple[object, ...]:
        """Which hit of one article speaks best for it."""
        return self.signature.wraps, self.kind, self.near, self.signature.regex is None, self.at


class Matcher:
    """Finds the articles of one index in any number of logs."""

    def __init__(self, index: Index) -> None:
        owners: dict[str, list[tuple[IndexEntry, Signature]]] = defaultdict(list)
        for entry in index.articles:
            for signature in entry.signatures:
                owners[signature.literal].append((entry, signature))
        self._owners = tuple(map(tuple, owners.values()))
        self._literals = tuple(owners)
        self._automaton = ahocorasick_rs.AhoCorasick(self._literals)

    def diagnose(self, raw: str) -> Diagnosis:
        """The articles whose failure a log shows, best first.

        What wraps other failures ranks below them, what the reader's versions rule out below
        that; then an error counts more than a warning, of two errors the first more (what follows
        may be its consequence), and of two that print the same line the one whose `near` occurs.
        """
        log = Log(raw)
        versions = versions_of(log.text)
        toolchain = as_toolchain(versions)
        best = self._best(log)
        for joint in JOINTS:
            if not best:
                broken = Log(raw, joint)
                best = self._best(broken)
                log = broken if best else log
        best = best or self._cut(log)
        answers = {name: _affected(hit.entry, toolchain) for name, hit in best.items()}
        ranked = sorted(best.values(), key=lambda hit: _rank(hit, answers[hit.entry.id][0], log))
        matches = tuple(
            _match(hit, answers[hit.entry.id], log, ranked, place)
            for place, hit in enumerate(ranked)
        )
        return Diagnosis(matches=matches, versions=versions, lines=log.number_of(len(log.text)))

    def _best(self, log: Log) -> dict[str, Hit]:
        """For each article that a log speaks of, the hit that speaks best for it."""
        best: dict[str, Hit] = {}
        for hit in self._hits(log):
            known = best.get(hit.entry.id)
            if known is None or hit.strength < known.strength:
                best[hit.entry.id] = hit
        return best

    def _cut(self, log: Log) -> dict[str, Hit]:
        """The article of which a summary shows the beginning of a literal, if it is one alone."""
        found = {
            entry.id: Hit(entry, signature, at, LineKind.ERROR, NearText.NOT_REQUIRED, is_cut=True)
            for number, at in truncated.places(log.text, self._literals)
            for entry, signature in self._owners[number]
            if not (signature.wraps or signature.regex)
        }
        return found if len(found) == 1 else {}

    def _hits(self, log: Log) -> Iterator[Hit]:
        places: dict[int, list[int]] = defaultdict(list)
        for literal, start, _ in self._automaton.find_matches_as_indexes(
            log.text, overlapping=True
        ):
            places[literal].append(start)
        near: dict[str, bool] = {}
        for literal, starts in places.items():
            half = MAX_OCCURRENCES // 2
            ends = starts if len(starts) <= MAX_OCCURRENCES else starts[:half] + starts[-half:]
            for entry, signature in self._owners[literal]:
                for at in ends:
                    found = _found(signature, at, log)
                    if found is None or _is_said_of(log, at, found):
                        continue
                    yield Hit(entry, signature, at, _kind(log, at), _near(signature, log, near))


def _found(signature: Signature, at: int, log: Log) -> tuple[int, int] | None:
    """What of the text says so, where a signature whose literal is there speaks of its failure."""
    literal = at, at + len(signature.literal)
    if signature.regex is None:
        return literal
    around, start = log.around(at, LINES, CHARACTERS)
    found = pattern(signature.regex).search(around)
    if found is None:
        return None
    whole = start + found.start(), start + found.end()
    if not whole[0] <= at < whole[1]:
        return literal
    return whole[0], max(whole[1], literal[1])


def _near(signature: Signature, log: Log, known: dict[str, bool]) -> NearText:
    if signature.near is None:
        return NearText.NOT_REQUIRED
    if signature.near not in known:
        known[signature.near] = pattern(signature.near).search(log.text) is not None
    return NearText.PRESENT if known[signature.near] else NearText.ABSENT


def _kind(log: Log, at: int) -> LineKind:
    """What the line reads as; what stands before a program's own line may say it, too."""
    said = log.excerpt(at)
    if is_dealt_with(log.index_of(at), log.line):
        return LineKind.WARNING
    if _error.search(said) or _error.search(log.shown[log.index_of(at)][:200]):
        return LineKind.ERROR
    return LineKind.WARNING if _warning.search(said) else LineKind.OUTPUT


def _is_said_of(log: Log, at: int, found: tuple[int, int]) -> bool:
    """Whether a line holds a failure's text and is no failure: it is source, or speaks of one."""
    if _is_code(log, at):
        return True
    line, start = log.excerpt(at), log.excerpt_start(at)
    before, after = line[: max(found[0] - start, 0)], line[max(found[1] - start, 0) :]
    if is_mention(before + MARK + after):
        return True
    return is_quiet(log.before(log.index_of(at)), line) and not log.is_piped


def _is_code(log: Log, at: int) -> bool:
    """Whether a line is source that a traceback shows.

    What stands below a frame is, unless it stands further left: a frame of `python -c` has none.
    """
    index = log.index_of(at)
    above = log.line(index - 1, SHOWN)
    if _frame.search(above) and log.indent(index) >= log.indent(index - 1):
        return True
    if _location_line.search(above) and log.depth(index) > log.depth(index - 1):
        return True
    return bool(_code.search(log.excerpt(at)))


def _rank(hit: Hit, affected: str, log: Log) -> tuple[object, ...]:
    """Of two that print the same line, the one whose context is there comes first."""
    return (
        hit.signature.wraps,
        affected == "not affected",
        hit.kind,
        log.index_of(hit.at),
        hit.near,
        hit.signature.regex is None,
        -len(hit.signature.literal),
        hit.entry.id,
    )


def _affected(entry: IndexEntry, toolchain: Toolchain) -> tuple[Affectedness, str]:
    """Whether the reader's versions are affected, and why."""
    if not entry.affected:
        return "affected", "it fails on every version"
    claimed = " or ".join(
        " and ".join(f"{name} {span}" for name, span in one.items()) for one in entry.affected
    )
    answer = is_affected(entry.affected, toolchain)
    if isinstance(answer, MissingVersion):
        return "unknown", f"{claimed} is; the log shows no version of {answer.name}"
    if isinstance(answer, UndecidedVersion):
        return "unknown", f"{claimed} is; {answer.reason}"
    if not answer and any("gpus" in one for one in entry.affected):
        return "unknown", f"{claimed} is; a log does not show how many GPUs there are"
    names = {name for one in entry.affected for name in one}
    known = ((name, toolchain.version(name)) for name in sorted(names))
    shown = ", ".join(f"{name} {version}" for name, version in known if version)
    return ("affected" if answer else "not affected"), f"{claimed} is; the log shows {shown}"


def _match(
    hit: Hit, answer: tuple[Affectedness, str], log: Log, ranked: Sequence[Hit], place: int
) -> Match:
    entry, signature = hit.entry, hit.signature
    doubts = tuple(_doubts(hit, answer, log, ranked))
    telling = signature.regex is not None or len(signature.literal) >= TELLING
    return Match(
        id=entry.id,
        title=entry.title,
        summary=entry.summary,
        line=log.number_of(hit.at),
        text=log.excerpt(hit.at).strip(),
        signature=signature.regex or signature.literal,
        affected=answer[0],
        reason=answer[1],
        confident=place == 0
        and hit.kind is LineKind.ERROR
        and telling
        and not doubts
        and not entry.retired,
        hints=(*doubts, *_wishes(entry, answer)),
        retired=entry.retired,
    )


def _doubts(
    hit: Hit, answer: tuple[Affectedness, str], log: Log, ranked: Sequence[Hit]
) -> Iterator[str]:
    """What speaks against it."""
    if hit.is_cut:
        yield "the line is cut: show the whole of it"
    if hit.signature.wraps:
        yield "other failures print this text, too: look for the first error above it"
    if answer[0] == "not affected":
        yield f"the versions in the log are not affected ({answer[1]})"
    line = log.index_of(hit.at)
    alike = [
        other.entry.id
        for other in ranked
        if other is not hit and log.index_of(other.at) == line and other.near <= hit.near
    ]
    if alike:
        yield f"{' and '.join(alike)} prints the same line: its Symptom tells them apart"
    elif hit.entry.confusable and hit.near is NearText.ABSENT:
        rest = " and ".join(hit.entry.confusable)
        yield f"{rest} may print this, too: its Symptom tells them apart"


def _wishes(entry: IndexEntry, answer: tuple[Affectedness, str]) -> Iterator[str]:
    """What the log could show more of."""
    if answer[0] == "unknown":
        names = sorted({name for one in entry.affected for name in one})
        yield f"add the version of {' and '.join(names)} (the output of `pip list`, say)"
