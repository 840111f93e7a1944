"""A pasted log → text in which a failure reads as the program printed it.

The patterns of this file are valid for Python and for JavaScript, and are exported with the index:
the site's box cleans a log with the very same ones (`assets/matching/cleaning.js`).
"""

from __future__ import annotations

import re
from bisect import bisect_right
from functools import cached_property
from itertools import accumulate

from kbtools.matching import mentions

HEAD, TAIL = 500_000, 1_500_000
"""Characters that are looked at, of the beginning and of the end: a failure is at one of them."""
NEAR = 400
"""Characters on either side of a place that are its excerpt."""
LINES = 60_000
"""Lines that are looked at, the first third and the last two."""

NOISE = (
    # escape sequences: CSI, OSC (terminated or not), and two-character ones
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b\n]*(?:\x07|\x1b\\)?|[@-Z\\-_]|)"
    # the same, written out by what captured them: `\x1b[31m`, `\u001b[0m`, `#033[1m`, `^[[0m`
    r"|(?:\\x1b|\\u001b|\\033|\\e|#033|\^\[)\[[0-9;]{0,20}[mK]"
    # what is left of a colour whose escape character was lost in copying
    r"|\[[0-9]{1,3}(?:;[0-9]{1,3}){0,5}m"
    r"|[\x00-\x08\x0b\x0c\x0e-\x1a\x1c-\x1f\x7f\ufeff]"
)
"""What is taken out of a log wherever it stands."""

PREFIXES = (
    r"[ \t]+",
    r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?(?= |\]|:|\t)",
    r"std(?:out|err) [FP](?= )",  # Kubernetes, after a timestamp
    r"\d\d[OE]\+?(?= )",  # GitLab, after a timestamp
    r"\d\d[-/]\d\d \d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?= |\])",
    r"\[?\d\d:\d\d:\d\d(?:[.,]\d{1,9})?\]?(?= )",
    r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) [ \d]\d \d\d:\d\d:\d\d"
    r" \S{1,80} \S{1,80}:(?= )",  # syslog
    r"\[[EWIFCVD]?\d{4,6} \d\d:\d\d:\d\d[^\]\n]{0,120}\]",  # c10: [W1121 10:00:00.1 File.cpp:1]
    r"[EWIFCVD]\d{4} \d\d:\d\d:\d\d[.\d]* [^\]\n]{0,300}\]",  # glog: E1121 10:00:00.1 12 api.py:1]
    r"\[(?:rank|default|trainer|worker|DP|TP|PP|EP)_?\d{0,5}\]:?",
    r"\[\d{1,4}/\d{1,4}\](?= )",  # Dynamo: [0/8]
    r"(?:rank|Rank|RANK) ?\d{1,5}:",
    r"\((?:[A-Za-z_][\w.:-]{0,60} )?(?:pid|ip|rank|actor_id)=[^)\n]{1,120}\)",  # vLLM, Ray
    r"\((?:EngineCore|Worker|APIServer|raylet)[\w.:-]{0,60}\)",
    r"\[[\w./-]{1,60}\.(?:py|cc|cpp|cu|h):\d{1,6}\]:?",
    r"\[?(?:DEBUG|INFO|WARNING|WARN|ERROR|CRITICAL|FATAL|TRACE)\]?(?=[ :|\]\t])"
    r"(?::[\w.]{1,60}:)?:?(?: {1,9}[\w/-]{1,60}\.py:\d{1,6}:?(?= ))?",
    r"[A-Za-z_][\w.]{0,60} (?=- \[?(?:DEBUG|INFO|WARNING|WARN|ERROR|CRITICAL)\b)",  # its logger
    r"[\w.<>]{1,60}:[\w.<>]{1,60}:\d{1,6} (?=- )",  # loguru, after a level
    r"\[\d{4}-\d\d-\d\d[T,]? ?\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?: ?UTC|Z|[+-]\d\d:?\d\d)?\]",
    r"\{[\w./<>-]{1,60}\.py:\d{1,6}\}",  # Airflow
    r"\d{1,5}:(?= )",  # srun --label
    r"\[\d{1,5},\d{1,5}\](?:<std(?:out|err)>)?:?",  # mpirun --tag-output
    r"\[pod/[\w./-]{1,200}\]",  # kubectl logs --prefix
    r"[a-z][a-z0-9]{0,40}(?:-[a-z0-9]{1,40}){1,6}-[a-z]{0,20}\d[a-z0-9]{0,20} [a-z][a-z0-9-]{0,40}"
    r"(?= )",  # stern
    r"(?:[a-z][a-z0-9-]{0,60}-\d{1,5}|\d{1,3}(?:\.\d{1,3}){3}):(?= )",  # a host's name or number
    r"##\[(?:error|warning|group|debug)\]",
    r"#\d{1,4} \d{1,6}\.\d{1,4}(?= )",  # docker build: #12 3.456
    r"[\w][\w.-]{0,60} {1,20}\|(?= |$)",  # docker compose: app-1  |
    r"\{(?:\"[\w.@-]{1,40}\": ?(?:\"[^\"\n]{0,80}\"|[\d.]{1,30}), ?){0,8}"  # a record in JSON
    r"\"(?:log|msg|message|text|line)\": ?\"",
    r"[|│┃>](?= |$)",  # exception groups, rich's boxes, quoted replies
    r"-(?= |$)",
    r"E {2,}(?=\S)",  # pytest
)
"""What stands before a program's own line: taken off repeatedly, in any order."""

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
"""As copied out of the source of a web page; in this order."""
ESCAPED = r"\\{1,4}n"
"""An end of line in a string: what holds two of them is several lines."""
NOTEBOOK = '"output_type":'
CELL = r'^ *"(.*?)(?:\\n)?",? *$'
"""A line of a notebook's file, without its quotation marks."""

_noise = re.compile(NOISE, re.ASCII)
_escaped, _cell = re.compile(ESCAPED), re.compile(CELL, re.MULTILINE)
_returns = re.compile(r"\r+\n?")
_prefix = re.compile(f"^(?:{'|'.join(PREFIXES)})+", re.MULTILINE | re.ASCII)


class Log:
    """A log as it was pasted, cleaned.

    `text` is what is matched. `joint` stands between its lines: a newline; or nothing, for a log
    that was broken at the width of a terminal; or a blank, for one that was broken between words.
    """

    def __init__(self, raw: str, joint: str = "\n") -> None:
        kept, self._gap_at, self._gap = _cut(_returns.sub("\n", raw))
        if not kept.isascii():  # half a surrogate pair, as of a file's name, is no text
            kept = kept.encode("utf-8", "replace").decode()
        self.shown, self._numbers = _lines(_noise.sub("", kept).replace("\u00a0", " "))
        """Its lines, with what stands before the program's own text."""
        lines = _prefix.sub("", "\n".join(self.shown)).split("\n")
        if joint == " ":
            lines = [line.strip() for line in lines]
        self.text = joint.join(lines)
        """Its lines without it."""
        self._joint = len(joint)
        ends = accumulate(len(line) + self._joint for line in lines)
        self._starts = [0, *ends][: len(lines)]

    def index_of(self, offset: int) -> int:
        """Which of `shown` and of `text`'s lines a place of `text` lies in, from 0."""
        return bisect_right(self._starts, offset) - 1

    def number_of(self, offset: int) -> int:
        """The line, from 1, in the log as it was pasted."""
        index = self.index_of(offset)
        index = self._numbers[index] if self._numbers else index
        return index + 1 + (self._gap if index >= self._gap_at else 0)

    def line(self, index: int, most: int | None = None) -> str:
        """A line of `text`, or so many characters of its beginning; empty outside of the text."""
        if not 0 <= index < len(self._starts):
            return ""
        start, end = self._starts[index], self._end(index)
        return self.text[start : end if most is None else min(end, start + most)]

    def indent(self, index: int) -> int:
        """How much stands before the program's own text on a line, in characters."""
        return len(self.shown[index]) - (self._end(index) - self._starts[index])

    def before(self, index: int) -> str:
        """What stands before the program's own text on a line."""
        return self.shown[index][: max(self.indent(index), 0)]

    @cached_property
    def is_piped(self) -> bool:
        """Whether it is what another program printed, all of it logged as if nothing were wrong."""
        return mentions.is_piped(self.text, lambda place: self.before(self.index_of(place)))

    def depth(self, index: int) -> int:
        """How far to the right of what stands before it the program's own text begins."""
        before = self.before(index)
        return len(before) - len(before.rstrip(" \t"))

    def excerpt(self, offset: int, characters: int = NEAR) -> str:
        """The line of `text` that a place lies in, or what is near it of a long one."""
        end = self._end(self.index_of(offset))
        return self.text[self.excerpt_start(offset, characters) : min(end, offset + characters)]

    def excerpt_start(self, offset: int, characters: int = NEAR) -> int:
        """Where that begins, in `text`."""
        return max(self._starts[self.index_of(offset)], offset - characters)

    def around(self, offset: int, lines: int, characters: int) -> tuple[str, int]:
        """The lines of `text` around a place, cut to a number of characters on either side.

        And where they begin in `text`.
        """
        index = self.index_of(offset)
        first = self._starts[max(index - lines, 0)]
        last = self._end(min(index + lines, len(self._starts) - 1))
        first = max(first, offset - characters)
        return self.text[first : min(last, offset + characters)], first

    def _end(self, index: int) -> int:
        if index + 1 < len(self._starts):
            return self._starts[index + 1] - self._joint
        return len(self.text)


def _lines(text: str) -> tuple[list[str], list[int]]:
    """The lines of a text and, where one in it holds several, which each comes from, from 0."""
    if "&" in text:
        for entity, sign in ENTITIES.items():
            text = text.replace(entity, sign)
    if NOTEBOOK in text:
        text = _cell.sub(r"\1", text)
    lines = text.replace('\\"', '"').replace("\\'", "'").split("\n")
    if "\\n" not in text:
        return lines, []
    split = [_escaped.split(line) if line.count("\\n") > 1 else [line] for line in lines]
    numbers = [number for number, pieces in enumerate(split) for _ in pieces]
    return [piece for pieces in split for piece in pieces], numbers


def _cut(text: str) -> tuple[str, int, int]:
    """What is looked at, the index of its first line after the gap, and the gap in lines."""
    if len(text) > HEAD + TAIL:
        head, tail = text[:HEAD], text[-TAIL:]
        total = text.count("\n")
    else:
        lines = text.count("\n")
        if lines <= LINES:
            return text, 0, 0
        head, tail, total = text, "", lines
    start = head.split("\n", LINES // 3)[: LINES // 3]
    end = (tail or head).rsplit("\n", LINES - LINES // 3)[1:] or [tail]
    return "\n".join((*start, *end)), len(start), total + 1 - len(start) - len(end)
