"""How good `diagnose` is on texts that lie outside of the repository.

A file of pointers names public threads and the articles that would be right; a folder holds the
text of each. What is kept of a thread is a row, which holds no text.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from kbtools.config import KbtoolsError
from kbtools.matching import Diagnosis, Matcher
from kbtools.matching.first import FirstFailure

DIGEST = 12
"""Digits of SHA-256 that stand for the text of a line, stripped."""
Verdict = Literal["right", "wrong", "missed", "false alarm", "allowed", "quiet", "no text"]
"""`quiet`: no article is right, and none was answered. `allowed`: none is, and the answer misleads
nobody; it counts neither for nor against."""
FirstVerdict = Literal["right", "wrong", "none", "unknown"]
"""`none`: no line was answered; `unknown`: the pointer does not say which line is right."""


class PointersError(KbtoolsError):
    """A file of pointers cannot be read."""


class Pointer(msgspec.Struct, frozen=True):
    """A thread, and what would be right about its text. A line of the file may hold more keys."""

    thread: str
    """`owner/repo#12`."""
    expected: tuple[str, ...]
    """Ids of articles, each of them right; none where no article is."""
    allowed: tuple[str, ...] = ()
    """Articles that mislead nobody, where none is right: those about a wrapper, say."""
    first: int | str | tuple[str, ...] | None = None
    """The line that failed first: its number, or the first digits of its digest. Several digests
    where each of several lines would be right, such as an exception and the line it quotes. A
    digest is that of the line in the text, or of what is left of it without a logger's prefix."""

    @property
    def file(self) -> str:
        """The name of its text: `owner__repo__12.txt`."""
        return self.thread.replace("/", "__").replace("#", "__") + ".txt"


class Row(msgspec.Struct, frozen=True):
    """What was answered about a thread. It may be published: it holds nothing of the text."""

    thread: str
    expected: tuple[str, ...]
    answer: tuple[str, ...]
    """Articles, best first."""
    sure: bool
    verdict: Verdict
    first: FirstVerdict = "unknown"
    """Whether the line that failed first is the expected one."""
    first_sure: bool = False


class Shares(msgspec.Struct, frozen=True):
    """How many threads were answered how, as counts."""

    threads: int
    """Whose text is in the folder."""
    failures: int
    """Of these, about a failure that has an article."""
    right: int
    """Of these, answered right by the first article."""
    answered: int
    """Threads for which any article was answered."""
    sure: int
    """Threads that were answered with confidence."""
    surely_wrong: int
    firsts: int
    """Threads whose pointer says which line failed first."""
    firsts_right: int
    firsts_surely_wrong: int
    confused: dict[str, int]
    """`KB0007 → KB0008` (the expected article, and the answer) → how often."""
    no_text: tuple[str, ...]
    """Threads whose text is not in the folder."""

    @property
    def recall(self) -> float:
        """Share of the failures that the first article answers, from 0 to 1."""
        return self.right / self.failures if self.failures else 1.0

    @property
    def precision(self) -> float:
        """Share of the answers that are right, from 0 to 1."""
        return self.right / self.answered if self.answered else 1.0

    @property
    def sure_precision(self) -> float:
        """Share of the sure answers that are right, from 0 to 1."""
        return 1 - self.surely_wrong / self.sure if self.sure else 1.0


def pointers(file: Path) -> tuple[Pointer, ...]:
    """The threads that a file of JSON Lines names.

    Raises:
        PointersError: it cannot be read, or one of its lines is no pointer.
    """
    try:
        lines = file.read_text("utf-8").splitlines()
    except (OSError, ValueError) as error:
        raise PointersError(f"{file}: {error}") from error
    numbered = enumerate(lines, 1)
    return tuple(_pointer(line, f"{file}:{number}") for number, line in numbered if line.strip())


def _pointer(line: str, place: str) -> Pointer:
    try:
        return msgspec.json.decode(line, type=Pointer)
    except msgspec.MsgspecError as error:
        raise PointersError(
            f'{place}: {error}; a line is {{"thread": "owner/repo#12", "expected": ["an id"]}}'
        ) from error


def rows(threads: Iterable[Pointer], texts: Path, matcher: Matcher) -> Iterator[Row]:
    """What the matcher answers to each thread.

    Args:
        threads: The threads.
        texts: The folder of their texts, which are read here and kept nowhere.
        matcher: That of the knowledge base.
    """
    for pointer in threads:
        try:
            text = (texts / pointer.file).read_bytes().decode("utf-8", "replace")
        except OSError:
            yield Row(pointer.thread, pointer.expected, (), False, "no text")
        else:
            yield _row(pointer, matcher.diagnose(text), text)


def _row(pointer: Pointer, diagnosis: Diagnosis, text: str) -> Row:
    answer = tuple(match.id for match in diagnosis.matches)
    return Row(
        thread=pointer.thread,
        expected=pointer.expected,
        answer=answer,
        sure=bool(answer) and diagnosis.matches[0].confident,
        verdict=_verdict(pointer, answer),
        first=_first_verdict(pointer.first, diagnosis.first, text),
        first_sure=diagnosis.first is not None and diagnosis.first.confident,
    )


def _first_verdict(
    expected: int | str | tuple[str, ...] | None, first: FirstFailure | None, text: str
) -> FirstVerdict:
    if expected is None:
        return "unknown"
    if first is None:
        return "none"
    if isinstance(expected, int):
        return "right" if first.line == expected else "wrong"
    line = (text.splitlines() + [""] * first.line)[first.line - 1]
    answers = {digest(first.text), digest(line)}
    return (
        "right" if answers & set([expected] if isinstance(expected, str) else expected) else "wrong"
    )


def _verdict(pointer: Pointer, answer: Sequence[str]) -> Verdict:
    if not answer:
        return "missed" if pointer.expected else "quiet"
    if not pointer.expected:
        return "allowed" if answer[0] in pointer.allowed else "false alarm"
    return "right" if answer[0] in pointer.expected else "wrong"


def shares(scored: Iterable[Row]) -> Shares:
    """How many threads were answered how."""
    scored = tuple(scored)
    read = [row for row in scored if row.verdict != "no text"]
    wrong = [row for row in read if row.verdict not in ("right", "quiet", "allowed")]
    confused = Counter(
        f"{' or '.join(row.expected) or 'none'} → {row.answer[0] if row.answer else 'none'}"
        for row in wrong
    )
    return Shares(
        threads=len(read),
        failures=sum(bool(row.expected) for row in read),
        right=sum(row.verdict == "right" for row in read),
        answered=sum(bool(row.answer) for row in read if row.verdict != "allowed"),
        sure=sum(row.sure for row in read if row.verdict != "allowed"),
        surely_wrong=sum(row.sure for row in wrong),
        firsts=sum(row.first != "unknown" for row in read),
        firsts_right=sum(row.first == "right" for row in read),
        firsts_surely_wrong=sum(row.first == "wrong" and row.first_sure for row in read),
        confused=dict(confused.most_common()),
        no_text=tuple(row.thread for row in scored if row.verdict == "no text"),
    )


def digest(line: str) -> str:
    """What stands for the text of a line in a pointer."""
    return hashlib.sha256(line.strip().encode()).hexdigest()[:DIGEST]
