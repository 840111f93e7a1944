"""By which patterns and limits the first failure of a log is found, apart from texts of products.

The forms of lines stand in `first_forms`; texts of products in `[diagnose]` of a knowledge base's
`kbtools.toml`. The patterns are valid for Python and for JavaScript, and are exported with the
index.
"""

from __future__ import annotations

import msgspec

from kbtools.matching.first_forms import EXCEPTION, FORMS, NAN, Form

ALARMS = (
    *("rror", "ERROR", "xception", "EXCEPTION", "Traceback (most recent", "atal", "FATAL"),
    *("ailed", "FAILED", "FAIL:", "ailure", "illed", "SIG", "ignal", "egmentation", "Segfault"),
    *("core dumped", "terminate called", "what():", "ssert", "Abort", "Bus error", "imeout"),
    *("timed out", "xit code", "xit status", "xitcode", "xited", "died", "Died", "not found"),
    *("No such file", "ermission denied", "undefined ", "Unsupported", "Interrupt", "OutOf"),
    *("refused", "nable to", "annot", "ould not", "CRITICAL", "panic", "No space", "oom-kill"),
    *("OOMKilled", "not recognized as", "bus error", "[E:", "_STATUS_"),
    *("oom_kill", "ut of memory", "build stopped", "above exception", "========= ", "atchdog"),
    *("reset by peer", "closed by peer", "roken pipe", "Expired", "No module named", "llegal in"),
    *("multiple definition", "segfault at", "FAIL file", "panicked at", "orrupt", "free(): "),
    *("invalid pointer", "smashing detected", "evel=e", "evel=E", "egmentation fault"),
    *("NVRM: Xid", "the bus", "Memory access fault", "undefined symbol", " missing"),
    *("not supported because", "NCCL WARN", "initialization: "),
    *("lready in use", "lready in Use", "lready In Use", "EXHAUSTED: ", "INTERNAL: ", "is dead"),
    *("lready dead", "is not defined", "Command '[", "-capable ", "river version"),
    *("ouldn't", "ouldn’t", "an't ", "an’t ", "an not ", "ccess violation", "Mismatched elem"),
    *(": nan", ":nan", "=nan", "= nan", ": NaN", "=NaN", ": tensor(nan", "has no attribute"),
    *("object is not ", " is not iterable", "required positional", "unexpected keyword"),
    *("index out of range", "invalid literal for", "o module named", "nspecified launch"),
    *("o kernel image", "nvalid device ", "isaligned address", "oo many resources"),
    *("unsupported toolchain", "UNAVAILABLE: ", "referenced before", "unsupported operand"),
    *(
        "positional argument",
        "guarantee(",
        "ize mismatch",
        "ndefined symbol",
        "ot enough ",
        "nsufficient ",
    ),
    *("only support", "not compatible", "t compatible", "the same", "but got", "but found"),
    *("but received", "eturned nan", "eturned NaN", "roduced nan", "roduced NaN", "ontains nan"),
    *("ontains NaN", "ontain nan", "ontain NaN", " did not ", " didn't ", "to avoid "),
    *("Unknown ", "Unrecogni", "Unexpected ", "Invalid ", "Malformed ", "Duplicate ", " Failed"),
)
"""Texts of lines that may report a failure."""
LOUD = (
    r"ERROR|CRITICAL|FATAL|SEVERE|^\[?[EF]\d{3,6} |(?:^|\s)E {2,}$|\.\d{6}: [EF] "
    r"|(?:^|[\s\[])[EF] [\w./+-]{1,200}:\d{1,6}\]"
)
"""The same of what stands before a program's own text."""

MOST_LINES = 1500
"""Lines with an alarm that are examined: two thirds of them the first of the log, the rest its
last."""
MOST_CHARACTERS = 500
"""Of a line that are examined."""

CRASH = r"\b(?:access violation|stack overflow)\b"
"""An exception that stands for a crash of code in C."""
ABORTS = r"^terminate called|^Fatal Python error: Aborted"
"""Below it, the same process reports the signal by which it ends itself."""
CLOSING = (
    r"^(?!(?:Runtime|Value|Type|Attribute|Import|Assertion|NotImplemented|Index|Key)(?:E|Er|Err|Erro)?$)"
    r"(?:[A-Za-z_]\w{0,60}\.){0,9}[A-Z_]\w{1,60}(?:\([\w.]{1,60}\))?(?::(?: |$)|$)"
)
"""The same below a traceback, where any name is that of an exception, unless the text ends in the
middle of it."""

PROSE = (
    r"^(?:@[\w-]{1,40}[,:]? )?(?:I|We|My|Our|You|When|While|After|If|This|These|There|It|Hi|Hello"
    r"|Hey|Dear|Thanks?|Unclear"
    r"|Describe|Why|How|What|Is|Has|Have|Do|Does|Did|Can|Anyone|Please|Same|Also|So|But|Then|Here|The"
    r"|A|An|In|On|For|As|At|By|To|With|Now|However|Although|Since|Unfortunately|Every|Some|Even"
    r"|Maybe|Just|Getting|Got|Trying|Running|Later|Finally|First|Next|Again|Once)[ ,'’!]"
    r".{0,400}[a-z] [a-z].{0,400}[a-z] [a-z]"
    r"|^\[(?:[Bb]ug|BUG|Issue|Question|Usage|Help|Feature)\]"
    r"(?!:? {0,2}(?:[(\[][\w. -]{1,40}[)\]]:? {0,2})?"
    r"[\[`\"']{0,2}(?:[\w.]{1,80}(?:Error|Exception)|[A-Z_]{8,40}): )"
)
"""A sentence, not a line of a log."""
NAMED = r"(?:Error|Exception): \S|\b[A-Z]\w{2,60}::\w{2,60} failed\b|\b[A-Z]{3,5} error: \S"
"""A sentence that names the failure as a program printed it."""
GUESS = r"\b(?:potential|possible|likely|common) (?:root )?(?:causes?|reasons?)\b"
"""A line that lists what may have happened."""
TITLE = (
    r"^(?!\[?(?:[Ff]eat|RFC)|(?:Add|Support|Resolve|Fix|Improve|Allow|Enable)\b)(?:.{0,400}\W)?"
    r"(?:[Ff]ail(?:s|ing|ures?|ed to)|[Uu]nsupported|[Uu]nresolved|[Uu]ndefined|[Ii]llegal"
    r"|[Ii]nvalid|[Mm]issing|[Mm]ismatch\w{0,4}|[Ii]ncompatib\w{1,6}|[Cc]orrupt\w{0,4}|[Ss]egmentation"
    r"|[Ss]egfaults?|NaNs?|nans?|OOM|[Dd]eadlocks?|[Tt]imed? ?out|TIMEOUT|[Uu]nable to"
    r"|[Cc]an ?not|[Cc]an['’]t|[Cc]ould ?n(?:ot|['’]t)|[Cc]ompiled without|[Nn]o such"
    r"|[Nn]o module|\w{3,40}(?:Error|Exception)|assert|has no attribute|larger than the maximum"
    r"|[Nn]o [\w-]{2,30} (?:\w{2,20} )?(?:is |are |was )?(?:available|found|detected)"
    r"|[Nn]ot (?:an? \w{2,20}|found|supported|implemented|available|defined|compiled|detected"
    r"|recogni[sz]ed|installed|enabled|compatible|iterable|callable|allowed|permitted"
    r"|initiali[sz]ed|divisible)|failed|requires?|must (?:be|have|match|not)"
    r"|should (?:be|have) the same|changed the default|no longer (?:supported|available|works?)"
    r"|(?:[Cc]onsider|[Pp]lease) (?:pass|us|sett?|install|upgrad|updat|report|check|mak)\w{0,4}"
    r"|asynchronously reported)\b|^.{0,400}(?:不支持|不兼容|不匹配|不可用|不能用"
    r"|不足|报错|失败|无法|找不到|崩溃|卡死|卡住|溢出|エラー|できない"
    r"|できません|失敗|ошибк|не удалось|[Ff]ehler|fehlgeschlagen|[Ee]rreur)"
)
"""What a title has that says what failed, in words that no program prints."""
HEADING = r"^ {0,3}#{2,6} "
"""The prefix of a heading of Markdown; that of a first line is taken off with its mark."""
FIELD = r"^(?:[Tt]itle|[Ss]ubject|[Ss]ummary)\*{0,2} ?:\*{0,2} |^\[[ xX]\] "
"""What begins a title, and an item of a check list."""
FENCE = "```"
"""Begins and ends a block of code."""
MOST_FENCES = 100
LEAST_REPEATED = 5
"""Characters of a message that repeats a part of another line, and not a number in it."""
MOST_TOLD = 20
"""Lines outside of the log that are compared with those of the log."""
LEVEL = (
    r"(?:^|[\s\[(|:<])(?:ERROR|CRITICAL|FATAL|Error|SEVERE)(?=$|[\s\])|:>])"
    r"|(?:^|\[)[EF]\d{3,6} \d\d:|\.\d{6}: [EF] |(?:^|[\s\[])[EF] [\w./+-]{1,200}:\d{1,6}\]"
)
"""The prefix of a line that reports a problem."""
STATEMENT = r"^[ \t]*(?:ERROR|FATAL|CRITICAL):?[ \t]*$"
"""A prefix that is part of what the program says."""
WARNS = (
    r"(?:^|[\s\[(|:<])(?:WARN|WARNING|Warning)(?=$|[\s\])|:>])|(?:^|\[)W\d{3,6} \d\d:|\.\d{6}: W "
    r"|(?:^|[\s\[])W [\w./+-]{1,200}:\d{1,6}\]"
)
"""The prefix of a line that warns."""
DESPITE = rf"{NAN}|\bOP_REQUIRES failed\b"
"""A line that reports a failure, though its level is that of a warning or less."""
INFORMS = (
    r"(?:^|[\s\[(|:<])(?:INFO|DEBUG)(?=$|[\s\])|:>])|(?:^|\[)[ID]\d{3,6} \d\d:|\.\d{6}: I "
    r"|(?:^|[\s\[])I [\w./+-]{1,200}:\d{1,6}\]"
)
"""The prefix of a line that informs, unless it holds an exception."""
WARNING = (
    r"^(?:\S{1,300}:\d{1,6}: )?(?:\w{0,60}Warning\b(?!: [A-Z]{3,4} initialization: )"
    r"|[Ww]arnings?\b|WARNING\b)|: warning[: ]"
)
"""A line that warns."""
PYTEST = r"(?:^|\s)E {2,}$"
"""The prefix of the message of an exception, as pytest prints it."""

STACK = (
    r"^(?:frame )?\\?#\d{1,4}:? |(?<!\w )@ {1,9}0x[0-9a-f]{6}|^[~^ ]{3,}$|^❱? {0,3}\d{1,6} │"
    r"|^NoneType: None$"
    # the prompt of a shell
    r"|^(?:\([\w.-]{1,40}\) )?\[?[\w.*-]{1,60}@[\w.*-]{1,60}[: ][^\s$#]{0,200}\]?[$#] "
    r"|^PS [A-Z]:\\[^>]{0,200}> "
)
"""A frame of a C++ stack, the marks below a line of source, and the traceback of no exception."""
GOES_ON = (
    r"(?<!instead of )"
    r"\b(?:will retry|retrying|retried|recovered|recovering|falling back|fell back)\b"
)
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
    crash: str = CRASH
    aborts: str = ABORTS
    prose: str = PROSE
    guess: str = GUESS
    named: str = NAMED
    title: str = TITLE
    heading: str = HEADING
    field: str = FIELD
    fence: str = FENCE
    most_fences: int = MOST_FENCES
    most_told: int = MOST_TOLD
    least_repeated: int = LEAST_REPEATED
    level: str = LEVEL
    statement: str = STATEMENT
    warns: str = WARNS
    informs: str = INFORMS
    despite: str = DESPITE
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
