"""How a log is judged: patterns and limits, which the scripts of the site take from the index.

They are written here alone. The patterns are valid for Python and for JavaScript;
`site/assets/matching/pattern.js` gives them the same meaning.
"""

from __future__ import annotations

import msgspec

from kbtools.matching import cleaning, truncated
from kbtools.matching import mentions as mention_rules  # Rules has a field of that name
from kbtools.matching.translations import TRANSLATIONS
from kbtools.toolchains.model import MACHINE

LINES, CHARACTERS = 16, 4000
"""How far around its literal a signature's regex may reach."""
MAX_OCCURRENCES = 8
"""Examine at most this many occurrences of a literal: the first half and the last half."""
TELLING = 20
"""Characters of a literal that is evidence enough without a regex."""
LINE_BEGIN = 400
"""Characters of the line above a failure that are read, to see whether it is a frame."""
PREFIX = 200
"""Characters of a line with its prefix that are read, to see whether it is an error."""

JOINTS = ("", " ")
"""Where nothing matches, lines are joined: a terminal or a formatter may have broken them."""

ERROR = (
    r"(?:^|[\s\]\[(:;'\"|.])(?:\w*(?:Error|Exception|Unsupported|OutOfResources)(?:Group)?"
    r"|[Ee]rror|ERROR|fatal|Fatal|FATAL|failed|FAILED|terminate called|Assertion|assertion)\b"
    r"|error:|Error \[|=========|what\(\):|undefined symbol|cannot open shared object"
)
WARNING = r"(?:Warning\b|\bwarnings?\b|\bWARN(?:ING)?\b|(?:^|[\s\[])W\d{4,6} \d\d:)"
EXCEPTION = (
    r"^(?:Traceback \(most recent call last\)|terminate called"
    r"|(?:[\w.]{0,100}(?:Error|Exception|Unsupported)|[\w.]{0,80}OutOfResources): )"
)
"""A line that no program prints which only warns."""
GLUED = (
    r"^(?![#*/+-])(?:[^\"'`#\n]|\"[^\"\n]{0,200}\"|'[^'\n]{0,200}'){1,400}?"
    r"\b(?:[\w.]{0,60}(?:Error|Exception|Unsupported)|OutOfResources): [^\"'`\n]{0,300}$"
)
"""Source, and an exception that was printed without an end of line before it; nothing quoted."""
LISTED = (
    r"(?:\S{1,200}\.(?:pyi?|cuh?|cc|cpp|cxx|c|h|hpp|md|rst|html|ipynb|toml|ya?ml|json|sh)"
    r"[:-]\d{1,6}[:-][ \t]*|\d{1,6}[:|-]?[ \t]+|[+-][ \t]*)?"
)
"""The prefix of a line of a file that a program lists: its name and number, or a mark."""
CODE = (
    rf"^{LISTED}(?:raise \w|assert |#(?!\d)|//|/\*|\"\"\"|'''|return |print\(|def |class "
    r"|\* (?![`\"*_(]{0,3}[\w.]{0,80}(?:Error|Exception): )"  # but for an item of a list
    r"|import |(?:el)?if |from \w+ import |with pytest\.raises|[A-Z]{2,20}_CHECK|printf\(|except \S"
    r"|[\w.]+\.(?:debug|info|warning|error|exception|critical|warn|check|assert\w*)\()"
)
"""A line of a program's source, as tracebacks show it, not a line of its output."""
FRAME = r"^\s*File \".*\", line \d+"
"""A line below it, as far to the right or further, is source."""
RAISE = r"^raise [\w.]{1,80}\("
"""Below a frame, the last line of a traceback whose exception is cut off: what it raises."""
FENCE = "```"
"""Begins and ends a block of code, in Markdown."""
MARKS = r"^[~^ ]{2,}$"
"""The marks below a line of source."""
LOCATION_LINE = r"^\s*(?:\S+\.py:\d+: in |[\w./<>-]+\.py:\d+:? (?:in )?\w*)"
"""A line below it, further to the right, is source."""


class Rules(msgspec.Struct, frozen=True):
    """What a matcher needs to answer as this one does, apart from the articles.

    The names of its fields are part of version 1 of `api/v1/signatures.json`: fields may be added,
    none is renamed.
    """

    error: str = ERROR
    warning: str = WARNING
    exception: str = EXCEPTION
    glued: str = GLUED
    code: str = CODE
    frame: str = FRAME
    raising: str = RAISE
    marks: str = MARKS
    fence: str = FENCE
    place: str = LOCATION_LINE
    line_begin: int = LINE_BEGIN
    prefix: int = PREFIX
    mark: str = mention_rules.MARK
    quotes: tuple[str, ...] = mention_rules.QUOTES
    introduces: str = mention_rules.INTRODUCES
    follows: str = mention_rules.FOLLOWS
    span: str = mention_rules.SPAN
    pasted: str = mention_rules.PASTED
    introduction: int = mention_rules.INTRODUCTION
    mentions: tuple[str, ...] = mention_rules.MENTIONS
    quiet: str = mention_rules.QUIET
    quiet_record: str = mention_rules.QUIET_RECORD
    loud: str = mention_rules.LOUD
    dealt_with: str = mention_rules.DEALT_WITH
    traceback: str = mention_rules.TRACEBACK
    above: int = mention_rules.ABOVE
    below: int = mention_rules.BELOW
    near: int = mention_rules.NEAR
    piped: str = mention_rules.PIPED
    alarms: int = mention_rules.ALARMS
    entities: tuple[tuple[str, str], ...] = tuple(cleaning.ENTITIES.items())
    percent: tuple[tuple[str, str], ...] = tuple(cleaning.PERCENT.items())
    translations: tuple[tuple[str, str], ...] = TRANSLATIONS
    blank: str = cleaning.BLANK
    title: str = cleaning.TITLE
    escaped: str = cleaning.ESCAPED
    notebook: str = cleaning.NOTEBOOK
    cell: str = cleaning.CELL
    shared: str = cleaning.SHARED
    shared_least: int = cleaning.SHARED_LEAST
    summary: str = truncated.SUMMARY
    summary_least: int = truncated.LEAST
    summary_most: int = truncated.MOST
    summary_characters: int = truncated.CHARACTERS
    joints: tuple[str, ...] = JOINTS
    lines: int = LINES
    """Around a literal, on either side."""
    characters: int = CHARACTERS
    places: int = MAX_OCCURRENCES
    telling: int = TELLING
    excerpt: int = cleaning.EXCERPT
    head: int = cleaning.HEAD
    """Characters."""
    tail: int = cleaning.TAIL
    most_lines: int = cleaning.MAX_LINES
    machine: tuple[str, ...] = MACHINE
    """Names of versions that are of no distribution."""
