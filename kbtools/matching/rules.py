"""How a log is judged: patterns and limits, which the site's box takes from the index.

The patterns are valid for Python and for JavaScript; `assets/matching/cleaning.js` gives them the
same meaning.
"""

from __future__ import annotations

import msgspec

from kbtools.matching import cleaning, truncated
from kbtools.matching import mentions as quoting

LINES, CHARACTERS = 16, 4000
"""How far around its literal a signature's regex may reach."""
MAX_OCCURRENCES = 12
"""Examine at most this many occurrences of a literal: the first half and the last half."""
TELLING = 20
"""Characters that a literal needs to be sure of itself without a regex."""

JOINTS = ("", " ")
"""Where nothing is found, lines are joined: a terminal or a formatter may have broken them."""

ERROR = (
    r"(?:^|[\s\]\[(:;'\"|.])(?:\w*(?:Error|Exception|Unsupported|OutOfResources)(?:Group)?"
    r"|[Ee]rror|ERROR|fatal|Fatal|FATAL|failed|FAILED|terminate called|Assertion|assertion)\b"
    r"|error:|Error \[|=========|what\(\):|undefined symbol|cannot open shared object"
)
WARNING = r"(?:Warning\b|\bwarnings?\b|\bWARN(?:ING)?\b)"
LISTED = (
    r"(?:\S{1,200}\.(?:pyi?|cuh?|cc|cpp|cxx|c|h|hpp|md|rst|html|ipynb|toml|ya?ml|json|sh)"
    r"[:-]\d{1,6}[:-][ \t]*|\d{1,6}[:|-]?[ \t]+|[+-][ \t]*)?"
)
"""What stands before a line of a file that a program lists: its name and number, or a mark."""
CODE = (
    rf"^{LISTED}(?:raise \w|assert |#(?!\d)|//|/\*|\* |\"\"\"|'''|return |print\(|def |class "
    r"|import |(?:el)?if |from \w+ import |with pytest\.raises|TORCH_CHECK|printf\(|except \S"
    r"|[\w.]+\.(?:debug|info|warning|error|exception|critical|warn|check|assert\w*)\()"
)
"""A line that is a program's source, as tracebacks show it, not what a program said."""
FRAME = r"^\s*File \".*\", line \d+"
"""What stands below it, as far to the right or further, is source."""
LOCATION_LINE = r"^\s*(?:\S+\.py:\d+: in |[\w./<>-]+\.py:\d+:? (?:in )?\w*)"
"""What stands below it, further to the right, is source."""


class Rules(msgspec.Struct, frozen=True):
    """What a matcher needs to answer as this one does, apart from the articles."""

    error: str = ERROR
    warning: str = WARNING
    code: str = CODE
    frame: str = FRAME
    place: str = LOCATION_LINE
    quotes: tuple[str, ...] = quoting.QUOTES
    introduces: str = quoting.INTRODUCES
    mentions: tuple[str, ...] = quoting.MENTIONS
    quiet: str = quoting.QUIET
    quiet_record: str = quoting.QUIET_RECORD
    loud: str = quoting.LOUD
    dealt_with: str = quoting.DEALT_WITH
    traceback: str = quoting.TRACEBACK
    above: int = quoting.ABOVE
    below: int = quoting.BELOW
    near: int = quoting.NEAR
    piped: str = quoting.PIPED
    alarms: int = quoting.ALARMS
    entities: tuple[tuple[str, str], ...] = tuple(cleaning.ENTITIES.items())
    escaped: str = cleaning.ESCAPED
    notebook: str = cleaning.NOTEBOOK
    cell: str = cleaning.CELL
    summary: str = truncated.SUMMARY
    summary_least: int = truncated.LEAST
    summary_most: int = truncated.MOST
    joints: tuple[str, ...] = JOINTS
    lines: int = LINES
    """Around a literal, on either side."""
    characters: int = CHARACTERS
    places: int = MAX_OCCURRENCES
    telling: int = TELLING
    head: int = cleaning.HEAD
    """Characters."""
    tail: int = cleaning.TAIL
    most_lines: int = cleaning.LINES
