"""A log and an index → ranked articles, or none.

The twin of this module is `site/assets/matching/matcher.js`. A test compares their answers.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Literal

import ahocorasick_rs
import msgspec
from msgspec.structs import replace

from kbtools.articles.model import Signature
from kbtools.matching.cleaning import Log, clean
from kbtools.matching.doctor_report import DoctorFinding, DoctorReport, without_report
from kbtools.matching.first import Failures, FirstFailure, failures
from kbtools.matching.first_lines import LineReader
from kbtools.matching.hits import Examination, Hit, LineKind, NearText
from kbtools.matching.index import Index, IndexEntry
from kbtools.matching.matches import Match, claim_of, match_of, rank, recognised
from kbtools.matching.rules import JOINTS, MAX_OCCURRENCES
from kbtools.matching.truncated import truncated
from kbtools.matching.versions import VersionReader, as_toolchain


class Diagnosis(msgspec.Struct, frozen=True, kw_only=True):
    """What failed first in a log, and the articles that it is about; none is an answer, too."""

    schema: Literal[2] = 2
    """Version of this format; docs/diagnose.md says what changed in each."""
    first: FirstFailure | None
    """What failed first; None where nothing failed."""
    matches: tuple[Match, ...]
    versions: dict[str, str]
    """Name → version, as the log shows them."""
    lines: int
    """Of the log as it was pasted."""
    findings: tuple[DoctorFinding, ...] = ()
    """What the doctor found, of a report that is in the text or was given with it."""


class Matcher:
    """Finds the articles of one index in any number of logs."""

    def __init__(self, index: Index) -> None:
        owners: dict[str, list[tuple[IndexEntry, Signature]]] = defaultdict(list)
        for entry in index.entries:
            for signature in entry.signatures:
                owners[signature.literal].append((entry, signature))
        self._owners = tuple(map(tuple, owners.values()))
        self._literals = tuple(owners)
        self._automaton = ahocorasick_rs.AhoCorasick(self._literals)
        self._versions = VersionReader(index.versions)
        self._names = {name for name, _ in index.versions} | {"sm"}
        self._lines = LineReader(index.first, index.texts)

    def diagnose(
        self,
        raw: str,
        at_hand: Mapping[str, str] = MappingProxyType({}),
        doctor: DoctorReport | None = None,
    ) -> Diagnosis:
        """The articles whose failure a log shows, best first.

        `at_hand` is name → version, of what the reader's machine has: it counts before what the log
        shows, which may be of another place. `doctor` is what the doctor said of that machine; a
        report of its that is in the log counts where none is given.

        What wraps other failures ranks below them, what the reader's versions rule out below
        that; then an error counts more than a warning, of two errors the first more (what follows
        may be its consequence), and of two that print the same line the one whose `near` occurs.
        """
        text, pasted = without_report(raw)
        doctor = doctor or pasted or DoctorReport({})
        lines = clean(text)
        log = Log(lines)
        failed = failures(log, self._lines)
        of_machine = {name: v for name, v in doctor.versions.items() if name in self._names}
        versions = {**self._versions.read(log.text), **of_machine, **at_hand}
        best = self._best(log, failed)
        for joint in JOINTS:
            if best:
                break
            joined = Log(lines, joint)
            best = self._best(joined, failed)
            log = joined if best else log
        best = best or self._truncated(log)
        toolchain = as_toolchain(versions)
        causes = {finding.article for finding in doctor.findings}
        claims = {
            identifier: replace(claim_of(hit.entry, toolchain), has_cause=identifier in causes)
            for identifier, hit in best.items()
        }
        ranked = sorted(best.values(), key=lambda hit: rank(hit, claims[hit.entry.id], log))
        matches = tuple(match_of(hit, claims, log, ranked, failed.first) for hit in ranked)
        return Diagnosis(
            first=_first(failed, matches),
            matches=matches,
            versions=versions,
            lines=log.line_number(len(log.text) - log.text.endswith("\n")),
            findings=doctor.findings,
        )

    def _best(self, log: Log, failed: Failures) -> dict[str, Hit]:
        """For each article that a log is about, the hit that is the best evidence for it."""
        best: dict[str, Hit] = {}
        texts: dict[str, set[str]] = defaultdict(set)
        lines: dict[str, set[int]] = defaultdict(set)
        for hit in self._hits(log):
            texts[hit.entry.id].add(hit.signature.literal)
            lines[hit.entry.id].add(log.line_number(hit.offset))
            rival = best.get(hit.entry.id)
            if rival is None or hit.strength < rival.strength:
                best[hit.entry.id] = hit
        return {
            article: replace(
                hit, texts=len(texts[article]), only_noticed=lines[article] <= failed.noticed
            )
            for article, hit in best.items()
        }

    def _hits(self, log: Log) -> Iterator[Hit]:
        occurrences: dict[int, list[int]] = defaultdict(list)
        for literal, start, _ in self._automaton.find_matches_as_indexes(
            log.text, overlapping=True
        ):
            occurrences[literal].append(start)
        examination = Examination(log)
        half = MAX_OCCURRENCES // 2
        for literal, offsets in occurrences.items():
            if len(offsets) > MAX_OCCURRENCES:
                offsets = offsets[:half] + offsets[-half:]
            for entry, signature in self._owners[literal]:
                for offset in offsets:
                    hit = examination.hit(entry, signature, offset)
                    if hit is not None:
                        yield hit

    def _truncated(self, log: Log) -> dict[str, Hit]:
        """The only article of which a truncated line has the beginning of a literal."""
        hits = {
            entry.id: Hit(
                entry, signature, offset, LineKind.ERROR, NearText.NOT_REQUIRED, is_cut=True
            )
            for number, offset in truncated(log.text, self._literals)
            for entry, signature in self._owners[number]
            if not (signature.wraps or signature.regex)
        }
        return hits if len(hits) == 1 else {}


def _first(failed: Failures, matches: tuple[Match, ...]) -> FirstFailure | None:
    """What failed first; the line of the best article, where nothing else is known but a title."""
    if not matches or not (failed.first is None or failed.is_worded):
        return failed.first
    return recognised(matches[0]) or failed.first
