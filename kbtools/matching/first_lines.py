"""A cleaned log → the records of its failures: what each line reads as, who printed it and when.

The twin of this module is `site/assets/matching/first_lines.js`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import ahocorasick_rs
import msgspec
from msgspec.structs import replace

from kbtools.config import Texts
from kbtools.matching.cleaning import Log
from kbtools.matching.first_forms import Kind, Weight
from kbtools.matching.first_rules import FirstRules
from kbtools.matching.hits import Examination, is_code

MARKED = ("`", "**", "_*")
MARKS = "`*_"
"""What a line begins with that was pasted as code or emphasised, and what is taken off it."""
QUOTING = ("`", '"')
"""Marks of a quotation."""
ENDS = frozenset({Weight.AFTERMATH, Weight.DEATH})
"""How processes end: their forms decide before the texts of products."""
FAILURES = frozenset(Weight) - ENDS


class Moment(msgspec.Struct, frozen=True):
    """When a line was printed, as far as the log shows it."""

    day: int
    """Of the year, roughly; 0 where the log shows none."""
    microseconds: int
    """Since the beginning of that day."""


class Reading(msgspec.Struct, frozen=True):
    """What a line reads as by itself."""

    weight: Weight
    kind: Kind
    start: int = 0
    """Where the text begins that it is known by."""


class Record(msgspec.Struct, frozen=True):
    """A line that reports a failure."""

    line: int
    """From 0, among the lines of the cleaned log."""
    text: str
    weight: Weight
    kind: Kind
    process: str
    """Its rank, worker or pod, as the log names it; empty where it names none."""
    moment: Moment | None = None
    is_worded: bool = False
    """Whether it is known by the words of a title alone."""
    is_title: bool = False
    """Whether it is a heading of Markdown."""


class LineReader:
    """Reads lines of any number of logs, by the rules and the texts of an index."""

    def __init__(self, rules: FirstRules, texts: Texts) -> None:
        self.rules = rules
        self._texts: tuple[tuple[Weight, Kind, tuple[str, ...]], ...] = (
            (Weight.AFTERMATH, "aftermath", texts.aftermath),
            (Weight.WRAPPER, "wrapper", texts.wrappers),
            (Weight.WITNESS, "peer", texts.witnesses),
        )
        alarms = (*rules.alarms, *texts.aftermath, *texts.wrappers, *texts.witnesses)
        self._automaton = ahocorasick_rs.AhoCorasick(tuple(dict.fromkeys(alarms)))
        self._forms = tuple(
            (form.weight, form.kind, _compiled("|".join(form.patterns))) for form in rules.forms
        )
        self._processes = tuple(map(_compiled, rules.processes))
        self._names_process = tuple(map(_compiled, rules.names_process))
        self.patterns = Patterns(rules)

    def alarms(self, log: Log) -> list[int]:
        """The lines that may report a failure; of many, the first and the last."""
        is_loud = self.patterns.loud.search
        alarms = {index for index in range(log.size) if is_loud(log.prefix(index))}
        if log.is_titled:
            alarms.add(0)
        end = -1
        for _, start, _ in self._automaton.find_matches_as_indexes(log.text):
            if start >= end:
                index = log.line_index(start)
                alarms.add(index)
                end = log.line_end(index)
        lines = sorted(alarms)
        most = self.rules.most_lines
        if len(lines) <= most:
            return lines
        return [*lines[: most - most // 3], *lines[-(most // 3) :]]

    def reading(self, line: str, prefix: str) -> Reading | None:
        """What a line reads as by itself; None where it reports no failure.

        `prefix` is what stands before the program's own text, which is `line`.
        """
        patterns = self.patterns
        if not line or patterns.warning.search(line) or patterns.frames.search(line):
            return None
        if patterns.pytest.search(prefix) and line.startswith("assert "):
            return Reading(Weight.CAUSE, "assertion")
        is_guess = patterns.guess.search(line) is not None
        reading = None if is_guess else self._by_form(line, ENDS)
        reading = reading or self._by_text(line) or self._by_form(line, FAILURES)
        if reading is not None:
            is_mild = patterns.warns.search(prefix) is not None or (
                patterns.informs.search(prefix) is not None
                and patterns.exception.search(line) is None
            )
            is_soft = reading.weight >= Weight.LOGGED or reading.kind == "refusal"
            if is_mild and is_soft and not patterns.despite.search(line):
                return None
            return reading
        return Reading(Weight.LOGGED, "error") if patterns.level.search(prefix) else None

    def _by_form(self, line: str, weights: frozenset[Weight]) -> Reading | None:
        for weight, kind, pattern in self._forms:
            if weight in weights and (match := pattern.search(line)):
                return Reading(weight, kind, match.start())
        return None

    def _by_text(self, line: str) -> Reading | None:
        for weight, kind, words in self._texts:
            for word in words:
                if word in line:
                    form = self._by_form(line, frozenset({weight}))
                    return Reading(weight, form.kind if form else kind, line.find(word))
        return None

    def process(self, prefix: str) -> str:
        """The process that a prefix names; empty where it names none."""
        return _first_group(self._processes, prefix) if prefix.strip() else ""

    def named_process(self, line: str) -> str:
        """The process that a line of text names."""
        return _first_group(self._names_process, line)

    def moment(self, log: Log, index: int, process: str) -> Moment | None:
        """When a line was printed: what its prefix shows, or that of a line above it.

        `process` is who printed it. A time of another process is where the search ends: what that
        process printed above it may be much older.
        """
        for above in range(index, max(index - self.rules.lines_back, -1), -1):
            prefix = log.prefix(above)
            time = self.patterns.time.search(prefix) if ":" in prefix else None
            if time:
                is_its_own = above == index or self.process(prefix) in ("", process)
                return _moment(time) if is_its_own else None
        return None


class Patterns:
    """The patterns of the rules, compiled."""

    def __init__(self, rules: FirstRules) -> None:
        self.loud = _compiled(rules.loud)
        self.frames = _compiled(f"{rules.stack}|{rules.frame}")
        self.goes_on = _compiled(rules.goes_on)
        self.exception = _compiled(rules.exception)
        self.prose = _compiled(rules.prose)
        self.guess = _compiled(rules.guess)
        self.named = _compiled(rules.named)
        self.closing = _compiled(rules.closing)
        self.crash = _compiled(rules.crash)
        self.aborts = _compiled(rules.aborts)
        self.level = _compiled(rules.level)
        self.statement = _compiled(rules.statement)
        self.warns = _compiled(rules.warns)
        self.informs = _compiled(rules.informs)
        self.despite = _compiled(rules.despite)
        self.warning = _compiled(rules.warning)
        self.pytest = _compiled(rules.pytest)
        self.header = _compiled(rules.header)
        self.frame = _compiled(rules.frame)
        self.destructor = _compiled(rules.destructor)
        self.direct = _compiled(rules.direct)
        self.handling = _compiled(rules.handling)
        self.lookup = _compiled(rules.lookup)
        self.quoting = _compiled(rules.quoting)
        self.quotes = _compiled(rules.quotes)
        self.time = _compiled(rules.time)
        self.title = _compiled(rules.title)
        self.heading = _compiled(rules.heading)
        self.field = _compiled(rules.field)
        self.same = _compiled(rules.same)


class LogReader:
    """Reads the lines of one log."""

    def __init__(self, log: Log, lines: LineReader) -> None:
        self.log = log
        self.lines = lines
        self.rules = lines.rules
        self.patterns = lines.patterns
        self._examination = Examination(log)

    def line(self, index: int) -> str:
        """The beginning of a line, without the marks of Markdown."""
        line = self.log.line(index, self.rules.most_characters).strip()
        if line.startswith(MARKED) and not line.startswith("***"):
            return line.strip(MARKS).strip()
        return line

    def is_fence(self, index: int) -> bool:
        """Whether a block of code begins or ends on a line."""
        fence = self.rules.fence
        return self.log.line(index, len(fence)) == fence

    def text(self, record: Record) -> str:
        """The text of a record, with the next line where its own ends before the message."""
        if not record.text.endswith(":"):
            return record.text
        below = range(record.line + 1, record.line + 1 + self.rules.lines_between)
        message = next(filter(None, map(self.line, below)), "")
        return f"{record.text} {message}".strip()

    def message(self, record: Record) -> str:
        """What a record says, without the name of an exception and the numbers in it."""
        whole = self.text(record)
        head, _, text = whole.partition(": ")
        for mark in QUOTING:
            if head.count(mark) % 2:  # a sentence goes on behind what it quotes
                text = text.partition(mark)[0]
        return self.patterns.same.sub("#", text or whole).strip(" .`'\"*_")

    def process(self, index: int) -> str:
        """The process that the prefix of a line names."""
        return self.lines.process(self.log.prefix(index))

    def record(self, index: int, process: str = "", closes: bool = False) -> Record | None:
        """The record of a line, or None where it reports no failure.

        `process` printed it, where the line itself does not say so. `closes` is whether a traceback
        ends with it, so that any name is that of an exception.
        """
        line, prefix = self.line(index), self.log.prefix(index)
        is_statement = self.patterns.statement.search(prefix) is not None
        if is_statement and not line and self.is_fence(index + 1):
            return None  # the heading of a block of code
        text = f"{prefix.strip()} {line}".strip() if is_statement else line
        reading = self.lines.reading(text, prefix)
        if reading is None and self._is_title(index):
            reading = self.lines.reading(text, "")  # whatever level the program gave it
        if self.patterns.pytest.search(prefix):
            closes = closes or not self.patterns.pytest.search(self.log.prefix(index - 1))
        closes = closes or self._is_below_frame(index)
        is_exception = closes and self.patterns.closing.search(line)
        if is_exception and (reading is None or reading.weight is Weight.LOGGED):
            reading = Reading(Weight.CAUSE, "exception")
        if reading is not None and not (closes or is_statement):
            skipped = self.log.line(index, self.rules.most_characters).find(line)
            is_mild = self.patterns.despite.search(line) is not None
            if not is_mild and self._is_no_report(index, reading.start + skipped):
                reading = None
        is_worded = reading is None and index == 0 and self.log.is_titled
        if is_worded and self.patterns.title.search(line):
            reading = Reading(Weight.WITNESS, "error")
        if reading is None:
            return None
        if reading.weight <= Weight.WITNESS and self._goes_on(index):
            return None
        if self.patterns.prose.search(text) and not prefix.strip():
            reading = replace(reading, weight=Weight.TOLD)
        process = self.process(index) or process
        if reading.weight >= Weight.DEATH:
            process = process or self.lines.named_process(line)
        moment = self.lines.moment(self.log, index, process)
        return Record(index, text, reading.weight, reading.kind, process, moment, is_worded)

    def _is_below_frame(self, index: int) -> bool:
        """Whether a line stands below the last frame of a traceback and its source."""
        is_frame = self.patterns.frame.search(self.line(index - 2)) is not None
        return is_frame and self.log.depth(index) < self.log.depth(index - 2)

    def _is_no_report(self, index: int, start: int) -> bool:
        """Whether a line is source, or only mentions a failure, at `start`."""
        if self.patterns.pytest.search(self.log.prefix(index)):
            return False
        offset = self.log.line_start(index)
        if is_code(self.log, offset):
            return True
        span = offset + start, self.log.line_end(index)
        return self._examination.is_only_mentioned(offset, span)

    def _goes_on(self, index: int) -> bool:
        """Whether the program says on a line, or below it, that it goes on.

        What stands below a title is not said of it.
        """
        lines_below = 0 if self._is_title(index) else self.rules.lines_below
        below = range(index, index + 1 + lines_below)
        return any(self.patterns.goes_on.search(self.line(line)) for line in below)

    def _is_title(self, index: int) -> bool:
        """Whether a line is a heading of Markdown, or the first line as a title."""
        is_heading = self.patterns.heading.search(self.log.prefix(index)) is not None
        return is_heading or (self.log.is_titled and index == 0)


def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.ASCII)


def _first_group(patterns: Iterable[re.Pattern[str]], text: str) -> str:
    for pattern in patterns:
        if match := pattern.search(text):
            return match[1].strip()
    return ""


def _moment(time: re.Match[str]) -> Moment:
    month, day = (int(part or 0) for part in (time[1] or time[3], time[2] or time[4]))
    hours, minutes, seconds = (int(time[group]) for group in (5, 6, 7))
    fraction = int(f"{time[8] or '':0<6.6}")
    return Moment(31 * month + day, ((hours * 60 + minutes) * 60 + seconds) * 1_000_000 + fraction)
