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
"""Lines of a log's end that are scored as a log of their own."""


class CorpusError(KbtoolsError):
    """A folder of logs has no `expected.toml`, or one that cannot be read."""


class Case(msgspec.Struct, frozen=True):
    """A log, and the articles that it is about: best first; none for a log without a failure."""

    name: str
    text: str
    expect: tuple[str, ...]
    hard: bool = False
    expect_tail: tuple[str, ...] | None = None
    """The articles that its last `TAIL` lines are about, where these show less than all of it."""


class ScoredLog(msgspec.Struct, frozen=True):
    """What the matcher answered to a log."""

    case: Case
    answer: tuple[str, ...]
    """Articles, best first."""
    confident: bool
    """Whether the matcher was confident of the first of them."""

    @property
    def right(self) -> bool:
        """Whether the first answer is an expected one, or none where none is expected."""
        first = self.answer[:1]
        return first == self.case.expect[:1] or bool({*first} & {*self.case.expect})


class Score(msgspec.Struct, frozen=True):
    """How many logs were answered how.

    `kbtools score --json` prints it, so that the names of the fields stay.
    """

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
    """Failures answered right, with confidence."""
    surely_wrong: int
    """Logs answered wrong, with confidence."""
    confused: dict[str, int]
    """`KB0007 → KB0008` (the expected article, and the answer) → how often."""

    @property
    def recall(self) -> float:
        """Share of the failures that the first article answers, from 0 to 1."""
        return self.first / self.failures if self.failures else 1.0


def corpus(folder: Path) -> Iterator[Case]:
    """The logs of a folder, as its `expected.toml` lists them.

    Raises:
        CorpusError: `expected.toml` or one of its logs is missing, or cannot be read.
    """
    file = folder / EXPECTED
    try:
        listed = tomllib.loads(file.read_text("utf-8"))
        for name, entry in listed.items():
            text = (folder / name).read_bytes().decode("utf-8", "replace")
            tail = tuple(entry["expect_tail"]) if "expect_tail" in entry else None
            yield Case(name, text, tuple(entry["expect"]), bool(entry.get("hard")), tail)
    except FileNotFoundError as error:
        step = f"put logs beside {EXPECTED}, which names the article of each"
        raise CorpusError(f"{error.filename} is missing; {step}") from error
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise CorpusError(f"{file}: {type(error).__name__}: {error}") from error


def recorded(articles: Iterable[Article], config: Config) -> Iterator[Case]:
    """Every recorded failure of a snippet that fails with a signature, and sound output.

    A snippet may pass and show its article's failure, because it provokes it on purpose: that
    output is not sound, and is left out. Where an output shows the failure of an article that is
    confusable with its own, that article is right as well.
    """
    by_id = {article.id: article for article in articles}
    for article in by_id.values():
        confusable = [by_id[name] for name in article.matter.confusable if name in by_id]
        rows = store.read(config.evidence, article.id)
        for snippet in article.snippets:
            has_signature = (
                snippet.role in (Role.REPRO, Role.DEADEND) and snippet.keys.fails == "signature"
            )
            for number, row in enumerate(store.of_snippet(rows, snippet)):
                name, output = f"{snippet.name}@{number}", row.outcome.output
                if row.outcome.status in ("failed", "signal") and has_signature:
                    rivals = tuple(rival.id for rival in confusable if _shows(rival, output))
                    yield Case(name, output, (article.id, *rivals))
                elif row.outcome.status == "passed" and not _shows(article, output):
                    yield Case(name, output, ())


def _shows(article: Article, output: str) -> bool:
    return any(recognises(signature, output) for signature in article.matter.signatures)


def last_lines(case: Case, lines: int) -> Case:
    """The log as if only so many lines of its end had been pasted."""
    end = "\n".join(case.text.rstrip("\n").split("\n")[-lines:])
    tail = case.expect_tail if lines <= TAIL else None
    return msgspec.structs.replace(case, text=end, expect=case.expect if tail is None else tail)


def scored(cases: Iterable[Case], matcher: Matcher) -> tuple[ScoredLog, ...]:
    """What the matcher answers to each log."""
    logs = []
    for case in cases:
        matches = matcher.diagnose(case.text).matches
        answer = tuple(match.id for match in matches)
        logs.append(ScoredLog(case, answer, bool(matches) and matches[0].confident))
    return tuple(logs)


def score(logs: Iterable[ScoredLog]) -> Score:
    """How many logs were answered how."""
    logs = tuple(logs)
    failures = [log for log in logs if log.case.expect]
    sound = [log for log in logs if not log.case.expect]
    wrong = [log for log in logs if not log.right]
    confused = Counter(
        f"{' or '.join(log.case.expect) or 'none'} → {log.answer[0] if log.answer else 'none'}"
        for log in wrong
    )
    return Score(
        failures=len(failures),
        first=sum(log.right for log in failures),
        third=sum(bool({*log.answer[:3]} & {*log.case.expect}) for log in failures),
        sound=len(sound),
        false_alarms=sum(bool(log.answer) for log in sound),
        sure=sum(log.right and log.confident for log in failures),
        surely_wrong=sum(log.confident for log in wrong),
        confused=dict(confused.most_common()),
    )
