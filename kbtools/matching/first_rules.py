"""What lines read as failures, and which of them report a failure that happened elsewhere.

The forms are those of Python, compilers, build programs, shells and schedulers, the same for every
knowledge base; texts of products stand in `[diagnose]` of its `kbtools.toml`. The patterns are
valid for Python and for JavaScript, and are exported with the index.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Literal

import msgspec

Kind = Literal[
    "exception",
    "compiler error",
    "assertion",
    "refusal",
    "signal",
    "error",
    "watchdog",
    "peer",
    "wrapper",
    "aftermath",
]


class Weight(IntEnum):
    """What a line tells of the failure; the smaller, the closer it is to the first one."""

    CAUSE = 0
    """What went wrong, in the words of what it went wrong in."""
    HANDLED = 1
    """An exception during whose handling another one was raised: a look-up that may fail, say."""
    DEATH = 2
    """A process was killed, or a signal ended it."""
    LOGGED = 3
    """Something was logged as an error."""
    WITNESS = 4
    """Another process, a connection or a clock noticed that something had stopped."""
    WRAPPER = 5
    """A process reports that another one failed."""
    AFTERMATH = 6
    """Printed on the way out: destructors, exits."""
    TOLD = 7
    """A person tells of it, in a sentence around the log."""


class Form(msgspec.Struct, frozen=True):
    """How a line reads."""

    weight: Weight
    kind: Kind
    patterns: tuple[str, ...]
    """Alternatives."""


ALARMS = (
    *("rror", "ERROR", "xception", "EXCEPTION", "Traceback (most recent", "atal", "FATAL"),
    *("ailed", "FAILED", "FAIL:", "ailure", "illed", "SIG", "ignal", "egmentation", "Segfault"),
    *("core dumped", "terminate called", "what():", "ssert", "Abort", "Bus error", "imeout"),
    *("timed out", "xit code", "xit status", "xitcode", "xited", "died", "Died", "not found"),
    *("No such file", "ermission denied", "undefined ", "Unsupported", "Interrupt", "OutOf"),
    *("refused", "nable to", "annot", "CRITICAL", "panic", "No space", "oom-kill", "OOMKilled"),
    *("oom_kill", "ut of memory", "build stopped", "above exception", "========= ", "atchdog"),
    *("reset by peer", "closed by peer", "roken pipe", "Expired", "No module named", "llegal in"),
    *("multiple definition", "segfault at", "FAIL file"),
)
"""Texts of lines that may report a failure."""
LOUD = r"ERROR|CRITICAL|FATAL|SEVERE|^\[?[EF]\d{3,6} |(?:^|\s)E {2,}$|\.\d{6}: [EF] "
"""The same of what stands before a program's own text."""

MOST_LINES = 1500
"""Lines with an alarm that are examined: two thirds of them the first of the log, the rest its
last."""
MOST_CHARACTERS = 500
"""Of a line that are examined."""

_exit_signals = r"(?:-(?:4|7|8|9|11)|132|135|136|137|139|3221225477|0xC0000005)(?!\d)"
_error_word = r"(?:fatal |internal |internal compiler |catastrophic )?error\b"
_workers = (
    r"(?:[Pp]rocess|[Ww]orker|[Cc]hild|[Jj]ob|[Tt]ask|[Rr]ank|[Aa]ctor|[Ss]ubprocess)(?:es|s)?"
)

EXCEPTION = (
    r"^(?!(?:Error|Exception):$)(?:[A-Za-z_][\w.]{0,200})?(?:Error|Exception)(?:Group)?(?:\([\w.]{1,60}\))?"
    r"(?::$|: (?! {0,3}[-+]?[\d.]{1,20}(?:e[-+]?\d{1,3})?,? *$))"
    r"|^(?:[A-Za-z_]\w{0,60}\.){1,9}[A-Z]\w{2,60}: "
)
"""The line of an exception, wherever it stands."""
CLOSING = r"^(?:[A-Za-z_]\w{0,60}\.){0,9}[A-Z_]\w{1,60}(?:\([\w.]{1,60}\))?(?::(?: |$)|$)"
"""The same below a traceback, where any name is that of an exception."""

FORMS = (
    Form(
        Weight.AFTERMATH,
        "aftermath",
        (
            r"^Exception ignored in",
            r"^Error in (?:atexit|sys\.excepthook)",
            r"^Exception in .{0,40}atexit",
            r"^(?:KeyboardInterrupt|GeneratorExit|SystemExit)\b",
            r"resource_tracker: ",
            r"sys\.meta_path is None|interpreter shutdown",
        ),
    ),
    Form(
        Weight.DEATH,
        "signal",
        (
            # a shell: job.sh: line 3: 4711 Killed   python train.py
            r"^(?:[^\s:]{1,200}: (?:line \d{1,6}: )?)?(?: {0,9}\d{1,9} )?(?:Killed"
            r"|Bus error|Segmentation fault|Illegal instruction|Floating point exception"
            r"|Trace/breakpoint trap)(?:$| {1,40}|\.)(?!\w{1,20} \w{1,20} \w)",
            r"\b[Ss]ignal ?:? ?(?:4|7|8|9|11)(?!\d|\.\d)|\bSIG(?:KILL|SEGV|BUS|ILL|FPE)\b",
            r"\bkilled by signal: (?!Terminated|Aborted)",
            r": line \d{1,6}: {1,9}\d{1,9} (?:Killed|Bus error|Segmentation fault|Illegal instr)",
            rf"\b(?:[Ee]xit(?:ed|s)?|return)[ _-]?(?:with )?(?:return )?(?:code|status)?\W{{0,5}}"
            rf"{_exit_signals}",
            r"\bkilled due to .{0,60}\bmemory\b",
            r"\b[Oo]ut of memory: [Kk]ill|\boom[-_]kill|\bOOMKilled\b|[Dd]etected \d+ oom",
            r"^Fatal Python error: (?!Aborted)|[Pp]rocess received signal|Segfault encountered",
            r"\bsegfault at [0-9a-f]",
        ),
    ),
    Form(Weight.CAUSE, "exception", (r"\bthread terminated with exception: (?!\[)",)),
    Form(
        Weight.WRAPPER,
        "wrapper",
        (
            r"returned non-zero exit status|did not run successfully",
            r"\b(?:[Ss]ee|[Cc]heck|[Ii]nspect|[Ll]ook at)\b.{0,60}\b(?:root cause|error|stack ?trace|traceback|logs?"
            r"|message)s?\b.{0,20}\b(?:above|below)\b",
            r"\babove\b.{0,30}\broot cause",
            r"\bsub-exceptions?\)$",
            # a process that ends itself has said why
            r"^terminate called|^Fatal Python error: Aborted|\bAborted(?: \(core dumped\)|$)",
            r"\bSIGABRT\b|\b[Ss]ignal ?:? ?6(?!\d|\.\d)",
            r"^ptxas fatal {0,4}: Ptx assembly aborted",
            r"\bninja: build stopped|^FAILED: |^g?make(?:\[\d{1,4}\])?: \*\*\*",
            r"^collect2: error: ld |\bcommand '?.{0,300} failed with exit (?:code|status)",
            r"^\d{1,6} errors? (?:generated|detected|found)|^\d{1,6} errors? and \d",
            r"errors occurred!$|^(?:ERROR: )?(?:Failed (?:to build|building)|Could not build) ",
            # the summaries of test programs
            r"^(?:ERROR|FAIL): \w{1,200} \([\w.]{1,300}\)|^(?:FAILED|ERROR) \S{1,300}(?:\.py|::)",
            r"^\S{1,300}:\d{1,6}: [\w.]{1,100}$|^=+ (?:FAILURES|ERRORS|short test summary info) =",
            r"\b[Ee]xit(?:ed)?[ _-]?(?:with )?(?:code|status)\b|\bexitcode\b",
            r"^SIG(?:TERM|INT|HUP)\b",
            rf"\b{_workers}\b.{{0,60}}\b(?:died|exited|terminated|crashed|aborted"
            r"|(?:has|have|is|are|was|were) (?:dead|killed|failed)|not alive)\b",
            r"\b(?:signal|SIGTERM|SIGINT|SIGQUIT)\b.{0,60}\b(?:from|to) (?:a |the )?"
            r"(?:child|process|group)|closing signal",
        ),
    ),
    Form(
        Weight.WITNESS,
        "watchdog",
        (
            r"\b[Ww]atchdog\b",
            r"\b(?:collective|barrier|heartbeat|rendezvous|operations?|store|[Ss]ocket)\b"
            r".{0,80}\b(?:timed? ?out|[Tt]imeout)\b",
            r"\b(?:[Tt]imed out|TIMEOUT) (?:waiting|after|in)\b",
            r"^(?:[\w.]{0,100}\.)?(?:TimeoutError|TimeoutException|TimeoutExpired)\b",
        ),
    ),
    Form(
        Weight.WITNESS,
        "peer",
        (
            r"[Cc]onnection (?:was )?(?:reset|closed|aborted|refused|lost)",
            r"(?:reset|closed) by (?:remote )?peer|[Bb]roken pipe|remote process (?:has )?exited",
            r"^(?:[\w.]{0,100}\.)?(?:EOFError|BrokenPipeError|Connection\w{0,20}Error"
            r"|CancelledError|IncompleteReadError|BrokenProcessPool|ServerDisconnectedError)\b",
        ),
    ),
    Form(
        Weight.CAUSE,
        "compiler error",
        (
            # gcc, clang: a.cpp:1:2: error:   nvcc, cl: a.cu(1): error
            r"^[^\s\"'][^\n\"']{0,300}?(?::\d{1,7}(?::\d{1,7})?:|\(\d{1,7}(?:,\d{1,7})?\) ?:)"
            rf" ?{_error_word}",
            r"^loc\(.{1,300}\): error: |^[a-z]\w{1,40} (?:fatal|error) {0,4}: |^error\[E\d{4}\]: ",
            r"^ptxas [^\n;]{1,300}; {0,2}(?:error|fatal) {0,4}: ",
            r"^(?:\S{0,200}/)?(?:[\w-]{1,40}-)?(?:gcc|g\+\+|cc|c\+\+|clang(?:\+\+)?)(?:-\d{1,3})?:"
            r" (?:fatal |internal )?error\b",
            r"\bundefined reference to |: multiple definition of ",
            r"^(?:\S{0,200}/)?(?:[\w-]{1,60}-)?ld(?:\.\w{1,10})?: (?!warning|.{0,200}warning:)",
            r"\bfatal error (?:LNK|C)\d{4}|\berror LNK\d{4}|^CMake Error\b",
        ),
    ),
    Form(
        Weight.CAUSE,
        "assertion",
        (
            r"\b[Aa]ssertion .{1,400} failed\b|\b[Aa]ssertion failed\b|\bCheck failed: ",
            r"^(?:[\w.]{1,100}\.)?AssertionError\b",
            # sanitizers
            r"^={5,20} (?:Invalid|Uninitialized|Race|Error|Misaligned|Illegal)",
        ),
    ),
    Form(Weight.CAUSE, "exception", (EXCEPTION, r"^what\(\): ")),
    Form(
        Weight.CAUSE,
        "error",
        (r"^[A-Z]{2,12} error: ", r"(?:^|\] )[A-Z]{2,12} (?:runtime|driver) error in .{1,300}: \w"),
    ),
    Form(
        Weight.CAUSE,
        "refusal",
        (
            rf"^[\w./+-]{{1,200}}: {_error_word}: |^(?:[Ee]rror|ERROR|fatal|FATAL|Fatal error): ",
            r": (?:command )?not found$",
            r": (?:[Nn]o such file or directory|[Pp]ermission denied|[Nn]o space left on device)"
            r"(?:$|[\s'\"])",
            r"^\S{1,200}: No module named |error while loading shared libraries",
            r"symbol lookup error|: undefined symbol: ",
            r"^E: |^docker: Error|^Error response from ",
            r"^\[(?:fatal|error)\] |(?:^|\] )[A-Z]{2,12} ERROR: ",
        ),
    ),
    Form(
        Weight.LOGGED,
        "error",
        (
            r"(?:^|[\s\[(:'\"])(?:[\w.]{1,200}(?:Error|Exception)\b ?[:(]|[Ee]rror ?: ?\S)",
            r"\bfailed ?: \S|\bFAIL\b .{0,200}\berror=",
            r"^(?:Failed|Cannot|Could not|Unable) to |\b\w{0,4}[A-Z]{3,12} (?:error|failure)\b",
            r"\b[A-Z]\w{2,12} failure \d",
        ),
    ),
)
"""How lines read; the first form that fits decides."""

PROSE = (
    r"^(?:I|We|My|Our|You|When|While|After|If|This|These|There|It|Hi|Hello|Hey|Dear|Thanks?|Unclear"
    r"|Describe|Why|How|What|Is|Has|Have|Do|Does|Did|Can|Anyone|Please|Same|Also|So|But|Then|Here|The"
    r"|A|An|In|On|For|As|At|By|To|With|Now|However|Although|Since|Unfortunately|Every|Some|Even"
    r"|Maybe|Just|Getting|Got|Trying|Running)[ ,'’!].{0,400}[a-z] [a-z].{0,400}[a-z] [a-z]"
    r"|^\[(?:[Bb]ug|BUG|Issue|Question|Usage|Help|Feature)\]"
)
"""A sentence, not a line of a log."""
GUESS = r"\b(?:potential|possible|likely|common) (?:root )?(?:causes?|reasons?)\b"
"""A line that lists what may have happened."""
HEADING = r"^ {0,3}#{2,6} "
"""The prefix of a heading of Markdown; that of a first line is taken off with its mark."""
FIELD = r"^(?:[Tt]itle|[Ss]ubject|[Ss]ummary)\*{0,2} ?:\*{0,2} |^\[[ xX]\] "
"""What begins a title, and an item of a check list."""
FENCE = "```"
"""Begins and ends a block of code."""
MOST_FENCES = 100
MOST_TOLD = 20
"""Lines outside of the log that are compared with those of the log."""
LEVEL = (
    r"(?:^|[\s\[(|:<])(?:ERROR|CRITICAL|FATAL|Error|SEVERE)(?=$|[\s\])|:>])"
    r"|(?:^|\[)[EF]\d{3,6} \d\d:|\.\d{6}: [EF] "
)
"""The prefix of a line that reports a problem."""
STATEMENT = r"^[ \t]*(?:ERROR|FATAL|CRITICAL):?[ \t]*$"
"""A prefix that is part of what the program says."""
WARNS = (
    r"(?:^|[\s\[(|:<])(?:WARN|WARNING|Warning)(?=$|[\s\])|:>])|(?:^|\[)W\d{3,6} \d\d:|\.\d{6}: W "
)
"""The prefix of a line that warns."""
INFORMS = r"(?:^|[\s\[(|:<])(?:INFO|DEBUG)(?=$|[\s\])|:>])|(?:^|\[)[ID]\d{3,6} \d\d:|\.\d{6}: I "
"""The prefix of a line that informs, unless it holds an exception."""
WARNING = r"^(?:\S{1,300}:\d{1,6}: )?(?:\w{0,60}Warning\b|[Ww]arnings?\b|WARNING\b)|: warning[: ]"
"""A line that warns."""
PYTEST = r"(?:^|\s)E {2,}$"
"""The prefix of the message of an exception, as pytest prints it."""

STACK = r"^(?:frame )?\\?#\d{1,4}:? |@ {1,9}0x[0-9a-f]{6}|^[~^ ]{3,}$|^❱? {0,3}\d{1,6} │"
"""A frame of a C++ stack, and the marks below a line of source."""
GOES_ON = r"\b(?:will retry|retrying|retried|recovered|recovering|falling back|fell back)\b"
"""What a program prints above a traceback, or below an exception, that it has dealt with."""
LINES_BELOW = 6

HEADER = r"Traceback \(most recent call last\)"
FRAME = r"^File \".{1,400}\", line \d"
DESTRUCTOR = r"^Exception ignored in"
"""Above the traceback of an exception that nobody could catch."""
DIRECT = r"^The above exception was the direct cause of the following exception"
HANDLING = r"^During handling of the above exception, another exception occurred"
LOOKUP = (
    r"^(?:[\w.]{1,200}\.)?(?:KeyError|AttributeError|IndexError|StopIteration|LookupError|ImportError"
    r"|ModuleNotFoundError|FileNotFoundError|TypeError|NameError|Empty|PackageNotFoundError)\b"
)
"""Exceptions that programs raise and catch in the ordinary course of things."""
QUOTING = (
    r"^(?:\"\"\"|'''|-- Process \d{1,5} terminated|Original Traceback|Traceback \(most recent)"
    r"|^File \".{1,400}\", line \d|^[\w.]{1,200}(?:Error|Exception): "
)
"""The line below an exception whose message is another exception."""
QUOTES = r"^[\w.]{1,200}(?:\([\w.]{1,60}\))?:?$|: Caught |raised:$|\): ray::|error:$|Error:$|:$"
"""The line of an exception whose message is another exception."""
LINES_OF_TRACEBACK = 150
LINES_OF_MESSAGE = 80
"""Lines below an exception that may be part of its message, if no traceback begins there."""
LINES_BETWEEN = 4
"""Lines between an exception and the one that it quotes."""

PROCESSES = (
    r"\[((?:rank|default|trainer|worker)_?\d{1,5})\]",
    r"\(((?:[A-Za-z_][\w.:-]{0,60} )?(?:pid|ip|rank|actor_id)=[^)\n]{1,120})\)",
    r"\(([A-Za-z][\w.:-]{0,60})\)",
    r"[ \[]((?:(?:DP|TP|PP|EP)\d{1,4} ?){1,4})\]",
    r"\b([Rr]ank[ :_]{0,2}\d{1,5})\b",
    r"\[(\d{1,5},\d{1,5})\]",
    r"\[(pod/[\w./-]{1,200})\]",
    r"^ {0,3}(\d{1,5}):(?= )",
    r"^([\w][\w.-]{0,60}?) {1,20}\|(?= |$)",
    r"^([a-z][a-z0-9-]{0,60}-\d{1,5}):(?= )",
)
"""What names a process in the prefix of its lines."""
NAMES_PROCESS = (
    r"^Process ([\w:-]{1,60}):$",
    r"^-- (Process \d{1,5}) terminated",
    r"\b(worker process \d{1,5})\b",
    r"((?:local_)?[Rr]ank[ :]{0,3}\d{1,5})\b",
)
"""What names it in a line of text: of its own, or above its traceback."""
TIME = (
    r"(?:(?:\d{4}[-/])?(\d\d)[-/](\d\d)[T ,]{1,2}|[EWIFCD](\d{1,2})(\d\d) )?"
    r"(\d\d):(\d\d):(\d\d)(?:[.,](\d{1,9}))?"
)
"""Month and day in one of two forms, or none; hour, minute, second and its fraction."""
LINES_BACK = 40
"""Lines above a line without a time that are looked at for one."""

SAME = r"0x[0-9a-fA-F]+|\d+"
"""What may differ in the same message of two processes."""
MOST_ECHOES = 50
LINES_AFTER = 200
"""If so many lines follow the last record, the program may have gone on."""


class FirstRules(msgspec.Struct, frozen=True):
    """What is needed to find the first failure of a log, apart from texts of products."""

    alarms: tuple[str, ...] = ALARMS
    loud: str = LOUD
    most_lines: int = MOST_LINES
    most_characters: int = MOST_CHARACTERS
    forms: tuple[Form, ...] = FORMS
    exception: str = EXCEPTION
    closing: str = CLOSING
    prose: str = PROSE
    guess: str = GUESS
    heading: str = HEADING
    field: str = FIELD
    fence: str = FENCE
    most_fences: int = MOST_FENCES
    most_told: int = MOST_TOLD
    level: str = LEVEL
    statement: str = STATEMENT
    warns: str = WARNS
    informs: str = INFORMS
    warning: str = WARNING
    pytest: str = PYTEST
    stack: str = STACK
    goes_on: str = GOES_ON
    lines_below: int = LINES_BELOW
    header: str = HEADER
    frame: str = FRAME
    destructor: str = DESTRUCTOR
    direct: str = DIRECT
    handling: str = HANDLING
    lookup: str = LOOKUP
    quoting: str = QUOTING
    quotes: str = QUOTES
    lines_of_traceback: int = LINES_OF_TRACEBACK
    lines_of_message: int = LINES_OF_MESSAGE
    lines_between: int = LINES_BETWEEN
    processes: tuple[str, ...] = PROCESSES
    names_process: tuple[str, ...] = NAMES_PROCESS
    time: str = TIME
    lines_back: int = LINES_BACK
    same: str = SAME
    most_echoes: int = MOST_ECHOES
    lines_after: int = LINES_AFTER
