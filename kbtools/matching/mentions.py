"""Recognise lines that mention an error without reporting one.

Such lines stand in help texts, names of tests, change logs and searches. The patterns are read on a
line in which NUL stands for the text that matched: a cleaned log has no NUL. They are valid for
Python and for JavaScript, and are exported with the index. The twin of this module is
`site/assets/matching/mentions.js`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import islice

MARK = "\0"
"""Stands for the text that matched."""

_inside = r"(?:[^{0}\\\n]|\\[^n]){{0,300}}"
QUOTES = tuple(
    # a line that is wholly an exception, or the loader's, between quotation marks is pasted
    rf"(?!^{quote}(?:[\w.]{{0,100}}(?:Error|Exception)|[^\n]{{1,300}}\.(?:so|dll)[.\d]{{0,12}}): "
    rf"[^\n]{{0,600}}{quote}[.!]?\s*$)"
    rf"(?<![\w)\]}}.!?\"'`])[rfbuRFBU]{{0,2}}{quote}"
    rf"{_inside.format(quote)}\0{_inside.format(quote)}(?:\\n)?{quote}(?!\w)"
    for quote in "\"'"
)
"""The matched text between two quotation marks of a kind, on one line of one text."""
REPORTED = (
    r"(?:[Ee]rrors?|[Ee]xceptions?|[Ww]arnings?|[Ff]ail(?:s|ed|ure|ures|ing)?|[Mm]essages?"
    r"|[Oo]utput|[Tt]raceback|[Ll]og|[Cc]rash(?:es|ed|ing)?|[Ii]ssue|[Pp]roblem|[Bb]ug|[Ss]ymptom"
    r"|[Dd]ies|[Aa]borts?|[Rr]easons?|[Cc]auses?|following|this|below|[Gg]ot|[Gg]ets?|[Gg]etting"
    r"|[Gg]ives?|gave|giving|see|[Ss]eeing|saw|hit|hitting|met|[Ss]how(?:s|ed|n|ing)?|[Ss]ays?|said"
    r"|saying|states?|stating|reads?|prints?|printed|reports?|reported|[Tt]hrows?|threw|throwing"
    r"|raised|receive[sd]?|receiving|encounter(?:s|ed|ing)?|obtain(?:ed)?|with|by|occur(?:s|r?ed)?"
    r"|appear(?:s|ed)?|happen(?:s|ed)?|return(?:s|ed)?"
    r"|is|was|because|hence|due to|triggers?|triggered|leads? to|led to|results? in|resulted in)"
    r"(?: (?:an?|the|this|following|me|us|error|errors|exception|warning|message|now|then|as|like"
    r"|after|that))"
    r"{0,3}(?:[*_]{1,2}| ?[:,]| ?=| ?->| ?=>| [-\u2013\u2014])?[ *_]*$"
)
"""Words before a quotation by which people report a failure in an issue tracker."""
SPAN = rf"(?<![\w`])`{_inside.format('`')}\0{_inside.format('`')}`(?![\w`])"
"""The matched text in a code span of Markdown."""
PASTED = (
    rf"^[\s*_>.\d)-]*$|{REPORTED}|(?:[Ee]rror|[Ee]xception|[Ff]ailure|[Mm]essage)[`*_]{{0,3}} \($"
)
"""What stands before a code span that is a pasted failure, not a mention of one: how people report
in an issue tracker."""

FOLLOWS = (
    r"^[,*_]{0,3} {1,2}(?:errors? |exceptions? |messages? )?"
    r"(?:occur|appear|happen|comes? up|pops? up|keeps?\b|(?:- )?(?:when|while|after|during)\b"
    r"|(?:is|was|gets?|got) (?:raised|thrown|shown|reported|printed|returned"
    r"|encountered|triggered|seen)\b)"
    r"|^[^\n\"'`]{0,30}\b(?:I|my|me|we|our)\b"
)
"""Words behind a quotation by which people report a failure."""
INTRODUCES = (
    # the key of a log record
    r"(?:[\"'](?:msg|message|short_message|error|err|exception|exc|exc_info|exc_text|traceback|stack"
    r"|stack_trace|log|text|textPayload|detail|details|reason|cause|stderr|stdout|output|evalue"
    r"|event|body|line|what|content|description|@message)[\"']\s?:\s?"
    # what a program prints before an exception that it caught
    r"|\b\w*(?:[Ee]rrors?|[Ee]xceptions?|[Ff]ail(?:ed|ure|s)?|[Ff]atal|[Rr]easons?|[Cc]auses?|msg|err"
    r"|[Mm]essage|because|because of|due to|raised|threw|got|(?:failed|died|ended|aborted|exited)"
    r" with)(?:\s?:\s?|=|\s)\(?"
    r"|\b\w*(?:Error|Exception|Warning|OutOfResources|Unsupported)\((?:[\w.]{1,40}=)?"
    rf"|^(?=.)what\(\): {{1,4}})$|{REPORTED}"
)
"""What stands before the quotation mark, where the quoted text is what happened."""
INTRODUCTION = 60
"""Characters before a quotation mark in which `INTRODUCES` is looked for."""

_subject = (
    r"(?:[*+•·] {1,4}|\d{1,4}[.)] {1,4}|#\d{1,7}:? |[0-9a-f]{7,40} (?:\([^)\n]{1,80}\) )?"
    r"|\[[\w /.-]{1,40}\]:? |(?:feat|fix|docs?|test|chore|refactor|ci|build|perf)"
    r"(?:\([^)\n]{1,40}\))?!?: ){0,3}"
)
_changed = (
    r"(?:Fix(?:e[sd])?|Add(?:s|ed)?|Remove[sd]?|Improve[sd]?|Handle[sd]?|Avoid(?:s|ed)?"
    r"|Prevent(?:s|ed)?|Work(?:ed)? ?around|Document(?:s|ed)?|Revert(?:s|ed)?|Resolve[sd]?"
    r"|Change[sd]?|Clarif(?:y|ies|ied)|Suppress(?:es|ed)?|Recover(?:s|ed)?|Retry|Retries|Catch"
    r"|Explain(?:s|ed)?|Mention(?:s|ed)?)"
)
_phrases = (
    r"(?:e\.g\.|i\.e\.|for example|for instance|such as|[Ii]f you (?:see|get|hit|encounter)"
    r"|[Kk]nown issues?|[Kk]nown errors?|[Hh]ints? for|[Rr]etr(?:y|ies|ied|ying) (?:on|after)"
    r"|[Rr]ecover(?:s|ed|ing)? from|[Ii]gnor(?:e|es|ed|ing)|[Ss]kip(?:s|ped|ping)?"
    r"|[Hh]andled|[Ss]uppress(?:es|ed|ing)?"
    # but for a line that tells where an error is described
    r"|[Ss]earch(?:es|ed|ing)? for(?! `\0' in https://)|[Ll]ook(?:s|ed|ing)? for"
    r"|[Cc]heck(?:s|ed|ing)? (?:\S{1,80} )?for|[Gg]rep(?:s|ping)?|no longer (?:says|raises|prints)"
    r"|used to (?:say|raise|print|fail with)|may (?:say|raise|print|fail with)|[Nn]o|[Nn]ever"
    r"|[Ss]imulat(?:es|ed|ing)|[Ii]nject(?:s|ed|ing)?|[Pp]retend(?:s|ing)?|[Dd]ocs for)"
)

MENTIONS = (
    # the name of a test, and its result
    r"::\w+\[[^\]\n]{0,300}\0",
    r"\0.{0,300}(?: (?:PASSED|SKIPPED|XFAIL|XPASS)|\.\.\. ?(?:ok|OK|skipped .{1,200}))\s*"
    r"(?:\[ *\d{1,3}%\]|\(\d[^)\n]{0,20}\))?\s*$",
    r"^_{2,} .{0,300}\0.{0,300} _{2,}$",
    r"^(?:XFAIL|XPASS|SKIPPED|SKIP|PASSED|PASS|ok)(?=[ :]).{0,300}\0|\.\.\. ?ok\b.{0,300}\0",
    r"\b[Ee]xpected (?:\w*(?:Error|Exception)|failure|error|exception|warning)\b.{0,100}\0",
    # a comment, at the end of a line
    r"(?:^|  |; ?)(?:#+|//+) (?:[^\\\n]|\\[^n]){0,300}\0",
    # a line that a change adds or takes away; an exception group begins with a plus, too
    r"^\+(?! Exception Group|[-+]).{0,300}\0|^-(?!:\d{1,7}:)[^-\s].{0,300}\0",
    # a page of documentation that a search lists
    r"^\S{1,200}\.(?:md|rst|html)[:-]\d{1,6}[:-](?!\d+:).{0,300}\0",
    # an indented line of source that a search lists
    r"^\S{1,200}\.(?:pyi?|cuh?|cc|cpp|cxx|c|h|hpp)[:-]\d{1,6}[:-](?:\t|[ \t]{2}).{0,300}\0",
    # the list of all errors, in a header
    r"^\w{0,20}\0\s{1,40}=\s{1,40}\d{1,6},?\s*$|^\w{1,80}\s{1,40}=\s{1,40}\w{0,20}\0,\s*$",
    # a change log
    rf"^{_subject}{_changed}(?: |: ).{{0,300}}\0",
    r"\0.{0,300}\((?:[\w.-]{1,40}/[\w.-]{1,60})?(?:#|gh-)\d{1,7}\)\s*$",
    # the address of a search, or of a form that is filled in
    r"https?://[^\s?]{1,300}\?[^\0=]{1,60}=[^\0]{0,300}\0",
    # prose, and a filter of warnings
    r"^(?:[Ss]ee|cf\.) .{0,300}\0|\bignore:[^\0]{0,60}\0",
    rf"(?:^|\W){_phrases}[\s:'\"`(]{{1,4}}(?:[\w.]{{1,60}}(?: [\w.]{{1,20}}){{0,2}}: )?\0",
    r"\0.{0,120}(?:\bno longer\b|\b(?:is|are|was|were) never\b|\bcan be ignored\b|\bharmless\b"
    r"|: (?:0|no|none)(?: \w+)?\s*$|\b0 (?:matches|hits|times|occurrences|lines)\b"
    r"|\b(?:did|does|do) not (?:occur|happen|appear)\b|\bnot seen\b)",
    # a program that goes on
    r"\0.{0,300}(?:(?<!instead of )"
    r"\b(?:will retry|retrying|retried|recovered|recovering|falling back|fell back)\b"
    r"|\bas expected\b|\(expected\))",
)
"""Each of these makes a line a mention, whatever its prefix."""

DEALT_WITH = (
    r"\b(?:will retry|retrying|retried|recovered|recovering|falling back|fell back|resuming"
    r"|resumed)\b|\b[Ii]gnore (?:above|this|the above)\b"
    r"|\bcan (?:be (?:safely )?ignored|(?:safely )?ignore)\b"
)
"""What a program prints above or below the traceback of an exception that it has caught."""
NEAR = 400
"""Characters of such a line that are read."""
ABOVE, BELOW = 60, 6
"""Lines above an exception's message in which its traceback begins, and lines below the message in
which the program says that it goes on."""
TRACEBACK = "Traceback (most recent call last)"

QUIET = (
    r"(?:^|[\s\[(|:<])(?:INFO|Info|DEBUG|TRACE|NOTICE|SUCCESS)(?=$|[\s\])|:>])"
    r"(?!.*(?:WARN|ERROR|CRITICAL|FATAL))|^[ID]\d{4} \d\d:|\.\d{6}: I "
    r"|(?:^|[\s\[])I [\w./+-]{1,200}:\d{1,6}\]"
)
"""The prefix of a line that reports no problem: a level such as INFO."""
PIPED = (
    r"^(?:Traceback \(most recent|File \".{1,300}\", line \d|[\w.]{0,100}(?:Error|Exception): "
    r"|E {2,}|\S{1,300}: (?:fatal )?error\b|terminate called|what\(\)|=========|ptxas|nvcc fatal)"
)
"""Text that no program logs at INFO. If a log has it on an INFO line, another program's output was
piped through the logger, and levels carry no information."""
ALARMS = 200
"""Examine at most this many occurrences of `PIPED`."""
QUIET_RECORD = (
    r"^[^\n]{0,200}\b(?:level|levelname|severity|lvl)[\"']?\s?[=:]\s?[\"']?"
    r"(?:info|INFO|debug|DEBUG)\b"
)
"""The same in a log record."""
LOUD = (
    r"^(?:\[?std(?:err|out)\]?[:>|]? ?|\[[^\]\n]{1,60}\]:? ?|[^\s:]{1,200}: ){0,2}"
    r"(?:(?:[\w.]*(?:Error|Exception|Unsupported|OutOfResources)|[A-Z]\w{1,20} [Ee]rror"
    r"|(?:fatal )?error)\b|[Tt]erminate called|what\(\)|=========|Traceback |ptxas|nvcc|nvlink"
    r"|E {2,})|Assertion `|Traceback \(most recent"
    r"|\"(?:log|stderr|exc_info|exc_text|exception|traceback|stack_trace)\"\s?:"
    r"|\b(?:init|lookup) failure:? \d"  # Ollama's discovery of GPUs
)
"""Text that reports a problem, whatever the level of its line."""

_dealt_with = re.compile(DEALT_WITH, re.ASCII)
_piped = re.compile(PIPED, re.ASCII | re.MULTILINE)
_span, _pasted = re.compile(SPAN, re.ASCII), re.compile(PASTED, re.ASCII)
_quotes = tuple(re.compile(pattern, re.ASCII) for pattern in QUOTES)
_introduces, _follows = re.compile(INTRODUCES, re.ASCII), re.compile(FOLLOWS, re.ASCII)
_mentions = tuple(re.compile(pattern, re.ASCII) for pattern in MENTIONS)
_quiet, _quiet_record, _loud = (
    re.compile(pattern, re.ASCII) for pattern in (QUIET, QUIET_RECORD, LOUD)
)


def is_mention(line: str, is_title: bool = False) -> bool:
    """Whether a line, with NUL for the matched text, mentions an error without reporting it.

    Args:
        line: The line.
        is_title: Whether it is the title of a thread, where quotation marks show what is reported.
    """
    if any(pattern.search(line) for pattern in _mentions):
        return True
    return not is_title and (
        any(_is_quoted(line, quote, _introduces) for quote in _quotes)
        or _is_quoted(line, _span, _pasted)
    )


def _is_quoted(line: str, quote: re.Pattern[str], introduction: re.Pattern[str]) -> bool:
    """Whether the matched text is quoted, and nothing around the quotation reports a failure."""
    match = quote.search(line)
    if match is None:
        return False
    before = line[max(match.start() - INTRODUCTION, 0) : match.start()]
    return not (introduction.search(before) or _follows.search(line[match.end() :]))


def is_dealt_with(index: int, line: Callable[[int, int], str]) -> bool:
    """Whether a program says that it goes on, around the exception whose message is on a line.

    `index` is that line. `line(index, most)` gives the first `most` characters of a line, and
    nothing outside of the log.
    """
    for below in range(index + 1, index + 1 + BELOW):
        if _dealt_with.search(line(below, NEAR)):
            return True
    for above in range(index, max(index - ABOVE, 0), -1):
        if line(above, NEAR).startswith(TRACEBACK):
            return _dealt_with.search(line(above - 1, NEAR)) is not None
    return False


def is_quiet(prefix: str, line: str) -> bool:
    """Whether a line or its prefix has a level such as INFO, and the line reports no problem."""
    has_quiet_level = _has_quiet_level(prefix) or _quiet_record.search(line)
    return bool(has_quiet_level) and not _loud.search(line)


def is_piped(text: str, prefix: Callable[[int], str]) -> bool:
    """Whether levels carry no information, since another program's output was logged at one level.

    `text` is the whole log. `prefix(offset)` gives the prefix of the line that a place lies in.
    """
    alarms = islice(_piped.finditer(text), ALARMS)
    return any(_has_quiet_level(prefix(alarm.start())) for alarm in alarms)


def _has_quiet_level(prefix: str) -> bool:
    return bool(_quiet.search(prefix) or _quiet_record.search(prefix))
