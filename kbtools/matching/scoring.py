"""How good the matcher is, on logs whose right answer is known."""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from kbtools.articles.model import Article, Role
from kbtools.articles.signatures import recognises
from kbtools.config import Config, KbtoolsError
from kbtools.evidence import store
from kbtools.matching import Matcher

EXPECTED = "expected.toml"
TAIL = 30
"""Lines that a shortened log keeps."""


class Case(msgspec.Struct, frozen=True):
    """A log, and the articles that it speaks of: the best first, none for what is no failure."""

    name: str
    text: str
    expect: tuple[str, ...]
    hard: bool = False
    expect_tail: tuple[str, ...] | None = None
    """The same of its last `TAIL` lines, where they hold nothing of what it is."""


class ScoredLog(msgspec.Struct, frozen=True):
    """What the matcher said to a log."""

    case: Case
    got: tuple[str, ...]
    confident: bool

    @property
    def right(self) -> bool:
        """The first answer is one of those expected; or none was, and none was given."""
        return self.got[:1] == self.case.expect[:1] or bool(set(self.got[:1]) & {*self.case.expect})


class Score(msgspec.Struct, frozen=True):
    """How many logs were answered how."""

    failures: int
    """Logs that show a failure of the knowledge base."""
    first: int
    """Of these, answered right by the first article."""
    third: int
    """Of these, with a right article among the first three."""
    sound: int
    """Logs that show none."""
    false_alarms: int
    """Of these, answered with an article."""
    sure: int
    """Failures answered right by an article that was sure of itself."""
    surely_wrong: int
    """Answers of any log that were sure of themselves and wrong."""
    confused: dict[str, int]
    """`KB0007 → KB0008` (expected, and given in its place) → how often."""

    @property
    def recall(self) -> float:
        """Share of the failures that the first article answers, from 0 to 1."""
        return self.first / self.failures if self.failures else 1.0


def corpus(folder: Path) -> Iterator[Case]:
    """The logs of a folder, as its `expected.toml` lists them.

    Raises:
        KbtoolsError: it is not there, or says something else.
    """
    file = folder / EXPECTED
    try:
        listed = tomllib.loads(file.read_text("utf-8"))
        for name, about in listed.items():
            text = (folder / name).read_bytes().decode("utf-8", "replace")
            tail = tuple(about["expect_tail"]) if "expect_tail" in about else None
            yield Case(name, text, tuple(about["expect"]), bool(about.get("hard")), tail)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise KbtoolsError(f"{file}: {type(error).__name__}: {error}") from error


def recorded(articles: Iterable[Article], config: Config) -> Iterator[Case]:
    """Every recorded failure of a snippet that fails with a signature, and sound output.

    A snippet may pass and show its article's failure, because it provokes it on purpose: that is
    no sound output, and is left out. Where it shows the failure of an article that is confusable
    with its own, that one is right as well.
    """
    every = {one.id: one for one in articles}
    for one in every.values():
        confusable = [every[other] for other in one.matter.confusable if other in every]
        rows = store.read(config.evidence, one.id)
        for snippet in one.snippets:
            fails = snippet.role in (Role.REPRO, Role.DEADEND)
            for number, row in enumerate(store.of_snippet(rows, snippet)):
                failed = row.outcome.status in ("failed", "signal")
                if failed and fails and snippet.keys.fails == "signature":
                    output = row.outcome.output
                    too = tuple(other.id for other in confusable if _shows(other, output))
                    yield Case(f"{snippet.name}@{number}", output, (one.id, *too))
                elif row.outcome.status == "passed" and not _shows(one, row.outcome.output):
                    yield Case(f"{snippet.name}@{number}", row.outcome.output, ())


def _shows(article: Article, output: str) -> bool:
    return any(recognises(signature, output) for signature in article.matter.signatures)


def last_lines(case: Case, lines: int) -> Case:
    """A log of which only the end was pasted."""
    kept = "\n".join(case.text.rstrip("\n").split("\n")[-lines:])
    told = case.expect_tail if lines <= TAIL and case.expect_tail is not None else case.expect
    return msgspec.structs.replace(case, text=kept, expect=told)


def answers(cases: Iterable[Case], matcher: Matcher) -> tuple[ScoredLog, ...]:
    """What the matcher says to each."""
    found = []
    for case in cases:
        matches = matcher.diagnose(case.text).matches
        got = tuple(match.id for match in matches)
        found.append(ScoredLog(case, got, bool(matches) and matches[0].confident))
    return tuple(found)


def score(given: Iterable[ScoredLog]) -> Score:
    """How many were answered how."""
    given = tuple(given)
    failures = [one for one in given if one.case.expect]
    sound = [one for one in given if not one.case.expect]
    wrong = [one for one in given if not one.right]
    confused = Counter(
        f"{' or '.join(one.case.expect) or 'none'} → {one.got[0] if one.got else 'none'}"
        for one in wrong
    )
    return Score(
        failures=len(failures),
        first=sum(one.right for one in failures),
        third=sum(bool({*one.got[:3]} & {*one.case.expect}) for one in failures),
        sound=len(sound),
        false_alarms=sum(bool(one.got) for one in sound),
        sure=sum(one.right and one.confident for one in failures),
        surely_wrong=sum(one.confident for one in wrong),
        confused=dict(confused.most_common()),
    )
