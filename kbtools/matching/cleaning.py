"""A pasted log → text in which a failure reads as the program printed it.

`clean` does what takes long, once for a log; `Log` joins the lines, and tells which line a place of
the text lies in. The twin of this module is `site/assets/matching/cleaning.js`. The patterns are
valid for Python and for JavaScript, and are exported with the index.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from functools import cached_property
from itertools import accumulate

import msgspec

from kbtools.matching.translations import TRANSLATIONS

HEAD, TAIL = 500_000, 1_500_000
"""Characters that are read, of the beginning and of the end: a failure is at one of them."""
MAX_LINES = 60_000
"""Lines that are read: the first third of this number from the beginning, the rest from the end."""
EXCERPT = 400
"""Characters on either side of a place that are its excerpt."""

NOISE = (
    # escape sequences: CSI, OSC (terminated or not), and two-character ones
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b\n]*(?:\x07|\x1b\\)?|[@-Z\\-_]|)"
    # the same, written out by what captured them: `\x1b[31m`, `\u001b[0m`, `#033[1m`, `^[[0m`
    r"|(?:\\x1b|\\u001b|\\033|\\e|#033|\^\[)\[[0-9;]{0,20}[mK]"
    # what is left of a colour whose escape character was lost in copying
    r"|\[[0-9]{1,3}(?:;[0-9]{1,3}){0,5}m"
    r"|\^M(?=\n)"  # a carriage return, written out
    r"|[\x00-\x08\x0b\x0c\x0e-\x1a\x1c-\x1f\x7f\ufeff]"
)
"""Text that is removed from a log wherever it stands."""

PREFIXES = (
    r"[ \t]+",
    r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?(?= |\]|:|\t)",
    r"std(?:out|err) [FP](?= )",  # Kubernetes, after a timestamp
    r"\d\d[OE]\+?(?= )",  # GitLab, after a timestamp
    r"\d\d[-/]\d\d \d\d:\d\d(?::\d\d(?:[.,]\d{1,9})?(?= |\])|(?= \[))",
    r"\[?\d\d:\d\d:\d\d(?:[.,]\d{1,9}|-\d{6})?\]?(?= )",
    r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) [ \d]\d \d\d:\d\d:\d\d"
    r" \S{1,80} \S{1,80}:(?= )",  # syslog
    r"\[[EWIFCVD]?\d{3,6} \d\d:\d\d:\d\d[^\]\n]{0,120}\]",  # c10: [W1121 10:00:00.1 File.cpp:1]
    r"[EWIFCVD]\d{4} \d\d:\d\d:\d\d[.\d]* [^\]\n]{0,300}\]",  # glog: E1121 10:00:00.1 12 api.py:1]
    # TensorFlow, XLA, c10, after a timestamp or without one
    r"(?:: |\[)?[EWIF] [\w./+-]{1,200}\.(?:cc|cpp|cu|h):\d{1,6}\]",
    r"\[(?:rank|default|trainer|worker|DP|TP|PP|EP)_?\d{0,5}\]:?",
    r"\[\d{1,4}/\d{1,4}\](?= )",  # Dynamo: [0/8]
    r"(?:rank|Rank|RANK) ?\d{1,5}:",
    r"\((?:[A-Za-z_][\w.:-]{0,60} )?(?:pid|ip|rank|actor_id)=[^)\n]{1,120}\)",  # vLLM, Ray
    r"\((?:EngineCore|Worker|APIServer|raylet)[\w.:-]{0,60}\)",
    r"(?:\d{1,8} (?=\[))?\[?[\w./-]{1,60}\.(?:py|cc|cpp|cu|h):\d{1,6}\]:?",
    r"\[?(?:DEBUG|INFO|WARNING|WARN|ERROR|CRITICAL|FATAL|TRACE)\]?(?=[ :|\]\t])"
    r"(?::[\w.]{1,60}:)?:?(?: {1,9}[\w/-]{1,60}\.py:\d{1,6}:?(?= ))?",
    r"[A-Za-z_][\w.]{0,60} (?=- \[?(?:DEBUG|INFO|WARNING|WARN|ERROR|CRITICAL)\b)",  # its logger
    r"[\w.<>]{1,60}:[\w.<>]{1,60}:\d{1,6} (?=- )",  # loguru, after a level
    r"\[\d{4}-\d\d-\d\d[T,]? ?\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?: ?UTC|Z|[+-]\d\d:?\d\d)?"
    r"(?: [A-Z]{2}\d{1,4}){0,4}\]",  # SGLang: [2025-01-01 10:00:00 DP0 TP1]
    r"\{[\w./<>-]{1,60}\.py:\d{1,6}\}",  # Airflow
    r"\d{1,5}:(?= )",  # srun --label
    r"\[\d{1,5},\d{1,5}\](?:<std(?:out|err)>)?:?",  # mpirun --tag-output
    r"\[\d{1,5}\]<std(?:out|err)>:",  # Horovod
    r"\[pod/[\w./-]{1,200}\]",  # kubectl logs --prefix
    r"[a-z][a-z0-9]{0,40}(?:-[a-z0-9]{1,40}){1,6}-[a-z]{0,20}\d[a-z0-9]{0,20} [a-z][a-z0-9-]{0,40}"
    r"(?= )",  # stern
    r"(?:[a-z][a-z0-9-]{0,60}-\d{1,5}|\d{1,3}(?:\.\d{1,3}){3}):(?= )",  # a host's name or number
    r"##\[(?:error|warning|group|debug)\]",
    r"#\d{1,4} \d{1,6}\.\d{1,4}(?= )",  # docker build: #12 3.456
    r"[\w][\w.-]{0,60} {1,20}\|(?= |$)",  # docker compose: app-1  |
    r"\{(?:\"[\w.@-]{1,40}\": ?(?:\"[^\"\n]{0,80}\"|[\d.]{1,30}), ?){0,8}"  # a record in JSON
    r"\"(?:log|msg|message|text|line)\": ?\"",
    r"[a-z][\w-]{2,20}: error: [a-z][\w-]{2,20}: {4,8}(?=\S)",  # slurmstepd, of a plugin's log
    r"[|│┃>](?= |$)",  # exception groups, rich's boxes, quoted replies
    r"-(?= |$)",
    # a heading of Markdown that is an exception, as in `## RuntimeError: text`
    r"#{2,6} {1,4}(?=[*_`\"]{0,3}[\w.]{0,80}(?:Error|Exception): )",
    r"E {2,}(?=\S)",  # pytest
)
"""Prefixes of a program's own line: removed repeatedly, in any order."""

ENTITIES = {
    "&quot;": '"',
    "&#x27;": "'",
    "&#39;": "'",
    "&#34;": '"',
    "&lt;": "<",
    "&gt;": ">",
    "&nbsp;": " ",
    "&amp;": "&",
}
"""Entities of text that was copied out of the source of a web page; replaced in this order."""
PERCENT = {"%20": " ", "%22": '"', "%27": "'", "%3A": ":", "%2C": ",", "%28": "(", "%29": ")"}
"""Characters as an address has them. A line that holds two blanks of these is read as text."""
BLANK = "%20"
TITLE = r"^[\s\ufeff]{0,80}#(?= [^\n]{1,300}\n[ \t\r]{0,80}\n| [^\n]{1,300}\n?(?![\s\S]))"
"""What makes the first line of a text a title, in Markdown, if a blank line follows, or nothing: it
is no comment there."""
ESCAPED = r"\\{1,4}n"
"""An end of line in a string. A line that holds two of them is split into several lines."""
NOTEBOOK = '"output_type":'
"""Text that only the file of a notebook holds."""
SHARED = (
    r"^(?![^\n:|>\]]{0,60}(?:[Ee]rror|Exception|[Ww]arning|note) ?[:|>\]])"
    r"([^\n:|>\]]{1,60}[:|>\]]) {1,8}(?=\S)"
)
"""What may be a program's own prefix, of no form that is known: `node-3 : `. It is one where it
stands before several lines; then it is removed before the lines are joined."""
SHARED_LEAST = 3
"""Lines that begin with the same text, for that to be a prefix."""
CELL = r'^ *"(.*?)(?:\\n)?",? *$'
"""A line of a notebook's file, without its quotation marks."""

_noise = re.compile(NOISE, re.ASCII)
_escaped, _cell = re.compile(ESCAPED), re.compile(CELL, re.MULTILINE)
_shared = re.compile(SHARED)
_returns = re.compile(r"\r+\n?")
_line_end = re.compile(r"\r+\n?|\n")
_title = re.compile(TITLE, re.ASCII)
_prefix = re.compile(f"^(?:{'|'.join(PREFIXES)})+", re.MULTILINE | re.ASCII)


class CleanLines(msgspec.Struct, frozen=True):
    """The lines of a log, cleaned, in two forms: with and without their prefixes."""

    prefixed: list[str]
    """Lines with what stands before the program's own text: times, ranks, levels."""
    unprefixed: list[str]
    """The same lines, the program's own text alone."""
    sources: list[int]
    """Which line of the excerpt each line comes from, from 0; empty where it is the same number."""
    gap_at: int
    """The line of the excerpt, from 0, before which lines of a long log were left out."""
    gap: int
    """How many lines were left out there."""
    returns: list[int]
    """Lines of the log, from 1, that a carriage return alone ends: a progress bar ends each of its
    states with one. They are lines here, and none for `grep -n` or an editor. Empty for a log
    without a line feed."""
    is_titled: bool
    """Whether the first line is a title, in Markdown: its mark is not in `prefixed`."""


def clean(raw: str) -> CleanLines:
    """The lines of a log as it was pasted; of a long one those of its beginning and its end."""
    excerpt, gap_at, gap = _both_ends(_returns.sub("\n", raw))
    if not excerpt.isascii():  # half of a surrogate pair, as in a file's name, is not text
        excerpt = excerpt.encode("utf-8", "replace").decode()
    quiet = _noise.sub("", excerpt).replace("\u00a0", " ")
    body = _title.sub("", quiet)
    prefixed, sources = _split(body)
    unprefixed = _prefix.sub("", "\n".join(prefixed)).split("\n")
    returns, is_titled = _ended_by_returns(raw), len(body) < len(quiet)
    return CleanLines(prefixed, unprefixed, sources, gap_at, gap, returns, is_titled)


class Log:
    """A cleaned log whose lines are joined: `text` is what is matched.

    `joint` stands between its lines: a newline; or nothing, for a log that was broken at the width
    of a terminal; or a blank, for a log that was broken between words.
    """

    def __init__(self, lines: CleanLines, joint: str = "\n") -> None:
        self._lines = lines
        pieces = lines.unprefixed
        if joint != "\n":
            pieces = _without_shared(pieces)
        if joint == " ":
            pieces = [piece.strip() for piece in pieces]
        self.text, self._joint_text = joint.join(pieces), joint
        self._joint = len(joint)
        ends = accumulate(len(piece) + self._joint for piece in pieces)
        self._starts = [0, *ends][: len(pieces)]

    @cached_property
    def by_lines(self) -> str:
        """The text with its ends of lines, also where `text` has none."""
        return self.text if self._joint_text == "\n" else "\n".join(self._lines.unprefixed)

    def line_index(self, offset: int) -> int:
        """The line that a place of `text` lies in, from 0: an index for the methods below."""
        return bisect_right(self._starts, offset) - 1

    def line_number(self, offset: int) -> int:
        """The line that a place of `text` lies in, from 1, in the log as it was pasted.

        It is the number that `grep -n` gives that line.
        """
        index = self.line_index(offset)
        index = self._lines.sources[index] if self._lines.sources else index
        line = index + 1 + (self._lines.gap if index >= self._lines.gap_at else 0)
        return line - bisect_left(self._lines.returns, line)

    def line(self, index: int, most: int | None = None) -> str:
        """A line of `text`, or its first `most` characters; empty outside of the text."""
        if not 0 <= index < len(self._starts):
            return ""
        start, end = self._starts[index], self._end(index)
        return self.text[start : end if most is None else min(end, start + most)]

    def line_start(self, index: int) -> int:
        """Where a line begins in `text`."""
        return self._starts[index]

    def line_end(self, index: int) -> int:
        """Where a line ends in `text`."""
        return self._end(index)

    @property
    def size(self) -> int:
        """The number of lines."""
        return len(self._starts)

    @property
    def gap_at(self) -> int | None:
        """The line before which lines of a long log were left out; None for a log in full."""
        return self._lines.gap_at if self._lines.gap else None

    @property
    def is_titled(self) -> bool:
        """Whether the first line that is not blank is a title, in Markdown."""
        return self._lines.is_titled

    def prefixed_line(self, index: int) -> str:
        """A line with what stands before the program's own text."""
        return self._lines.prefixed[index]

    def indent(self, index: int) -> int:
        """How much stands before the program's own text on a line, in characters."""
        return len(self._lines.prefixed[index]) - (self._end(index) - self._starts[index])

    def prefix(self, index: int) -> str:
        """What stands before the program's own text on a line."""
        return self._lines.prefixed[index][: max(self.indent(index), 0)]

    def depth(self, index: int) -> int:
        """How many blanks and tabs stand between a line's prefix and the program's own text."""
        prefix = self.prefix(index)
        return len(prefix) - len(prefix.rstrip(" \t"))

    def excerpt(self, offset: int) -> str:
        """The line of `text` that a place lies in, or the part of a long line near that place."""
        end = self._end(self.line_index(offset))
        return self.text[self.excerpt_start(offset) : min(end, offset + EXCERPT)]

    def excerpt_start(self, offset: int) -> int:
        """Where the excerpt of a place begins in `text`."""
        return max(self._starts[self.line_index(offset)], offset - EXCERPT)

    def around(self, offset: int, lines: int, characters: int) -> tuple[str, int]:
        """The part of `text` around a place, and where that part begins in `text`.

        `offset` is the place; `lines` and `characters` are how many of them the part has at most
        on either side of it.
        """
        index = self.line_index(offset)
        first = self._starts[max(index - lines, 0)]
        last = self._end(min(index + lines, len(self._starts) - 1))
        first = max(first, offset - characters)
        return self.text[first : min(last, offset + characters)], first

    def _end(self, index: int) -> int:
        if index + 1 < len(self._starts):
            return self._starts[index + 1] - self._joint
        return len(self.text)


def _ended_by_returns(raw: str) -> list[int]:
    """`CleanLines.returns` of a log as it was pasted."""
    if "\r" not in raw or "\n" not in raw:
        return []
    ends = enumerate(_line_end.findall(raw), 1)
    return [line for line, end in ends if not end.endswith("\n")]


def _without_shared(pieces: list[str]) -> list[str]:
    """The lines without a prefix that several of them share."""
    prefixes = [_shared.match(piece) for piece in pieces]
    count = Counter(prefix[1] for prefix in prefixes if prefix)
    return [
        piece[prefix.end() :] if prefix and count[prefix[1]] >= SHARED_LEAST else piece
        for piece, prefix in zip(pieces, prefixes, strict=True)
    ]


def _split(text: str) -> tuple[list[str], list[int]]:
    """The lines of a text, as `CleanLines.prefixed` and `CleanLines.sources` have them."""
    if "&" in text:
        for entity, sign in ENTITIES.items():
            text = text.replace(entity, sign)
    if NOTEBOOK in text:
        text = _cell.sub(r"\1", text)
    for foreign, english in TRANSLATIONS:
        text = text.replace(foreign, english)
    lines = text.replace('\\"', '"').replace("\\'", "'").split("\n")
    if BLANK in text:
        lines = [_without_percent(line) if line.count(BLANK) > 1 else line for line in lines]
    if "\\n" not in text:
        return lines, []
    split = [_escaped.split(line) if line.count("\\n") > 1 else [line] for line in lines]
    sources = [index for index, pieces in enumerate(split) for _ in pieces]
    return [piece for pieces in split for piece in pieces], sources


def _without_percent(line: str) -> str:
    for written, sign in PERCENT.items():
        line = line.replace(written, sign)
    return line


def _both_ends(text: str) -> tuple[str, int, int]:
    """The part of a log that is read, and `gap_at` and `gap` of `CleanLines`."""
    if len(text) > HEAD + TAIL:
        head, tail = text[:HEAD], text[-TAIL:]
        total = text.count("\n")
    else:
        total = text.count("\n")
        if total <= MAX_LINES:
            return text, 0, 0
        head, tail = text, ""
    first = MAX_LINES // 3
    start = head.split("\n", first)[:first]
    end = (tail or head).rsplit("\n", MAX_LINES - first)[1:] or [tail]
    return "\n".join((*start, *end)), len(start), total + 1 - len(start) - len(end)
