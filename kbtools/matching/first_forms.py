"""What lines read as failures, and which of them report a failure that happened elsewhere.

The forms are those of Python, compilers, build programs, shells, schedulers and GPU drivers, the
same for every knowledge base. The patterns are valid for Python and for JavaScript, and are
exported with the index, by `first_rules`.
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
    CUT = 8
    """A traceback begins, and the text ends before its exception."""


class Form(msgspec.Struct, frozen=True):
    """How a line reads."""

    weight: Weight
    kind: Kind
    patterns: tuple[str, ...]
    """Alternatives."""


_exit_signals = (
    # of Windows: those that begin with 0xC0, as a number of either sign, too
    r"(?:-(?:4|7|8|9|11)|132|135|136|137|139|-10737[34]\d{4}|32212[23]\d{4}"
    r"|0x[cC]0[0-9a-fA-F]{6})(?![\dA-Fa-f])"
)
_error_word = r"(?:fatal |internal |internal compiler |catastrophic )?error\b"
_workers = (
    r"(?:[Pp]rocess|[Ww]orker|[Cc]hild|[Jj]ob|[Tt]ask|[Rr]ank|[Aa]ctor|[Ss]ubprocess)(?:es|s)?"
)
_cannot = (
    r"(?:[Ff]ailed to|FAILED to|[Uu]nable to(?! find image )|[Cc]an ?not|[Cc]an['’]t"
    r"|[Cc]ould ?n(?:ot(?! collect$)|['’]t))"
)
_failed = r"(?:(?:has|have|had) )?failed"
_messages = (
    r"\bhas no attribute ['\"`]|\bobject is not (?:callable|iterable|subscriptable)\b"
    r"|\btype ['\"`]\w{1,60}['\"`] is not iterable\b"
    r"|\bmissing \d{1,3} required (?:keyword-only |positional )?argument"
    r"|\bgot an unexpected keyword argument\b|\bindex out of range$"
    r"|\btakes (?:from )?\d{1,3} (?:to \d{1,3} )?positional arguments? but\b"
    r"|\binvalid literal for int\(\)|\bcannot import name ['\"`]|\b[Nn]o module named ['\"`]"
    r"|\breferenced before assignment\b|\bunsupported operand type"
)
_cuda = (
    r"\bunspecified launch failure\b|\b[Aa]n illegal (?:memory access|instruction) was encountered"
    r"|\b[Nn]o kernel image is available\b|\b[Ii]nvalid device (?:function|ordinal)\b"
    r"|\b[Mm]isaligned address\b|\b[Tt]oo many resources requested for launch\b"
    r"|\b[Dd]river version is insufficient\b|\bPTX was compiled with an unsupported toolchain\b"
    r"|\b[Nn]o [A-Z]{4}-capable device\b|\b[Uu]ndefined symbol\b"
)
_mismatch = (
    r"^[`*_]{0,3}[A-Z][\w.-]{2,40} only supports? \w|\bis(?: not|n['’]t) compatible with \w"
    r"|\b(?:should|must) (?:all |both )?(?:be|have|match)\b.{0,60}\bthe same\b"
    r"|\b[Ee]xpected\b.{1,120}\bbut (?:got|found|received)\b"
    r"|\b(?:returned|produced|contains?) (?:nan|NaN|NAN)s?\b"
    r"|^[A-Z]\w{1,40} (?:\w{1,20} )?(?:which|that) did(?: not|n['’]t) [a-z]{3,20}\b"
    r"|\btry setting [\w=:]{4,60} to avoid \w"
    # an error that is quoted in a sentence
    r"|\b(?:[Ee]rror|[Ee]xception)s?(?: messages?)?"
    r"(?: (?:of|like|saying|says?|reads?|is|was))?:? [\"“][^\"”\n]{12,400}[\"”]"
)
NAN = (
    r"(?:^|[\s{(\[,|'\"])(?:[\w.]{0,40}[lL]oss\w{0,20}|LOSS|grad_?norm|ppl|perplexity)"
    r"['\"]?\*{0,2} {0,3}[:=] {0,3}(?:tensor\()?-?(?:nan|NaN|NAN)\b"
)
"""A row of a training whose loss is no number: programs log it as they log every row."""

EXCEPTION = (
    r"^(?!(?:Error|Exception):$)(?:[A-Za-z_][\w.]{0,200})?(?:Error|Exception)(?:Group)?(?:\([\w.]{1,60}\))?"
    r"(?::$|:(?=[A-Z])| ?: (?! {0,3}[-+]?[\d.]{1,20}(?:e[-+]?\d{1,3})?,? *$))"
    r"|^(?:[A-Za-z_]\w{0,60}\.){1,9}[A-Z]\w{2,60}: "
    # as people type the names of Python's
    r"|^(?:module ?not ?found|import|runtime|value|type|attribute|assertion|key|name|os|index"
    r"|memory|syntax|not ?implemented|file ?not ?found|permission) ?error: (?=\S)"
)
"""The line of an exception, wherever it stands."""
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
            r"^zsh: (?:segmentation fault|killed|bus error|illegal hardware instruction) ",
            r": line \d{1,6}: {1,9}\d{1,9} (?:Killed|Bus error|Segmentation fault|Illegal instr)",
            rf"\b(?:[Ee]xit(?:ed|s)?|return)[ _-]?(?:with )?(?:return )?(?:code|status)?\W{{0,5}}"
            rf"{_exit_signals}",
            r"\bkilled due to .{0,60}\bmemory\b",
            r"\b[Oo]ut of memory: [Kk]ill|\boom[-_]kill|\bOOMKilled\b|[Dd]etected \d+ oom",
            r"^Fatal Python error: (?!Aborted)|[Pp]rocess received signal|Segfault encountered",
            r"\bsegfault at [0-9a-f]|^Memory access fault by \w|^\W?Access violation\b",
        ),
    ),
    Form(Weight.CAUSE, "exception", (r"\bthread terminated with exception: (?!\[)",)),
    Form(
        Weight.WRAPPER,
        "wrapper",
        (
            r"returned non-zero exit status|did not run successfully",
            r"\bCalledProcessError: Command\b|^Command '\[",
            r"\b(?:[Ss]ee|[Cc]heck|[Ii]nspect|[Ll]ook at)\b.{0,60}"
            r"\b(?:root cause|error|stack ?trace|traceback|logs?|message)s?\b"
            r".{0,20}\b(?:above|below)\b",
            r"\babove\b.{0,30}\broot cause",
            # the log of what failed stands below
            r"\b(?:[Pp]rinting|[Ss]howing|[Dd]umping)\b.{0,60}\blog(?: files?|s)?:$",
            r"\b(?:[Cc]ontainer|[Pp]rocess|[Cc]ommand|[Ss]cript|[Jj]ob|[Tt]ask|[Hh]ook)\b.{0,60}"
            r"\bfailed with (?:error|exit|return) (?:code|status):? -?\d{1,3}$",
            r"\bsub-exceptions?\)$",
            # the message stands below: !!! Exception during processing !!!
            r"\b(?:[Ee]xception|[Ee]rror) (?:during|while|when) [a-z][\w ]{2,40}!{0,3}$",
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
            r"\bis (?:already )?dead\b",
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
            r"\bclient socket has failed to connect\b",
            r"(?:reset|closed) by (?:remote )?peer|[Bb]roken pipe|remote process (?:has )?exited",
            # pickle runs out of input at the end of a file, not of a connection
            r"^(?:[\w.]{0,100}\.)?(?:EOFError(?!: Ran out of input)|BrokenPipeError"
            r"|Connection\w{0,20}Error|CancelledError|IncompleteReadError|BrokenProcessPool|ServerDisconnectedError)\b",
        ),
    ),
    Form(
        Weight.CAUSE,
        "compiler error",
        (
            # gcc, clang: a.cpp:1:2: error:   nvcc, cl: a.cu(1): error
            r"^[^\s\"'][^\n\"']{0,300}?(?::\d{1,7}(?::\d{1,7})?:|\(\d{1,7}(?:,\d{1,7})?\) ?:)"
            rf" ?{_error_word}",
            r"^loc\(.{1,300}\): error: |(?:^|: )[a-z]\w{1,40} (?:fatal|error) {0,4}: ",
            r"^error\[E\d{4}\]: ",
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
            r"\b[Aa]ssertion .{1,400} failed\b|^[^\n\"]{1,400}: Assertion [`'‘]\S"
            r"|\b[Aa]ssertion failed\b|\b[Cc]heck failed(?:: | \()",
            r"^\S{1,300}:\d{1,6}:.{0,100}\bguarantee\(",
            r"^(?:[\w.]{1,100}\.)?AssertionError\b",
            r"\b[A-Z]{2,12}_ASSERT(?:\(.{1,300}\) failed|: \S)|^[A-Z]{2,4}assert: ",
            # the C library
            r"^(?:(?:\*\*\* )?Error in `[^']{1,200}': )?"
            r"(?:double free or corruption|free\(\): |(?:malloc|realloc)(?:_consolidate)?\(\): "
            r"|corrupted (?:size|double|unsorted)|munmap_chunk\(\): "
            r"|\*\*\* stack smashing detected)",
            # sanitizers
            r"^={5,20} (?:Invalid|Uninitialized|Race|Error|Misaligned|Illegal)",
        ),
    ),
    Form(
        Weight.CAUSE,
        "exception",
        # Python, C++, Rust, Go
        (
            *(EXCEPTION, r"^what\(\): ", r"^thread '.{1,80}' panicked at |^panic: "),
            r"^(?:ERROR|Error|error): [A-Z]\w{0,60}(?:Error|Exception): \S",  # Julia
        ),
    ),
    Form(
        Weight.CAUSE,
        "error",
        (
            r"^[A-Z]{2,12} error: |(?:^|\] )[A-Z]{2,12} (?:runtime|driver) error in .{1,300}: \w",
            # darknet; a state_dict that does not fit, without the name of the exception
            r"^[A-Z]{3,4} (?:status )?Error: |^Error\(s\) in loading state_dict for \w",
            # names of errors in C: cudaErrorInvalidDevice: text   Triton Error [CUDA]: text
            r"^[a-z]{2,6}Error[A-Z]\w{2,60}: \S|^[A-Z]\w{2,20} Error \[[A-Z]{2,8}\]: \S",
            r"\bNVRM: Xid \(|\bfallen (?:off|out)(?: of)? the bus\b",
            r"^\*\*\* An error occurred in MPI_\w",
            # XLA; TensorFlow, of one of several:   (0) INTERNAL: text
            r"^(?:\(\d{1,3}\) )?(?:INTERNAL|RESOURCE_EXHAUSTED|FAILED_PRECONDITION): {1,3}\S",
            r"^\(\d{1,3}\) (?:UNKNOWN|UNAVAILABLE|INVALID_ARGUMENT"
            r"|Internal|Unknown|Unavailable|Resource exhausted|Invalid argument): {1,3}\S",
        ),
    ),
    Form(
        Weight.CAUSE,
        "refusal",
        (
            rf"^[\w./+-]{{1,200}}: {_error_word}: |^(?:[Ee]rror|ERROR|FATAL|Fatal error): ",
            r"^fatal: (?!not a git repository)",  # builds ask git for a version, and go on
            r": (?:[Cc]ommand )?not found$|^zsh: command not found: "
            r"|is not recognized as an internal or external command",
            r"(?:: |^\S{1,200}: .{1,200}\[Errno \d{1,3}\] )"
            r"(?:[Nn]o such file or directory|[Pp]ermission denied|[Nn]o space left on device)"
            r"(?:$|[\s'\"`])",
            r"(?:^|[:-] )[Aa]ddress [Aa]lready [Ii]n [Uu]se\b",
            r"^\S{1,200}: No module named |error while loading shared libraries",
            r"symbol lookup error|(?:^|: |\) ?)undefined symbol(?::(?: |$)|$)",
            r"^\W?[\w./-]{1,200}\.(?:h|hpp|cuh|so(?:\.\d{1,4}){0,3}|dll)\W?"
            r" (?:is )?(?:not found|missing)\b",
            r"^E: |^docker: Error|^Error response from ",
            r"^\[(?:fatal|error)\] |(?:^|\] )[A-Z]{2,12} ERROR: ",
        ),
    ),
    Form(
        Weight.LOGGED,
        "error",
        (
            r"(?:^|[\s\[\](:'\"`]|[^\x00-\x7f])"
            r"(?:[\w.]{1,200}(?:Error|Exception)\b ?[:(]|[Ee]rror ?: ?\S)",
            r"\bfailed with error \d{1,6}\b|(?:^|\bname )\W?\w{2,60}\W? is not defined$",
            r"\bRESOURCE_EXHAUSTED: \S|\b[Ff]ailed ?: \S|\bFAIL\b .{0,200}\berror=",
            rf"^[Ff]ailed (?:in|for|on|at|with) |(?:^|[:\]>] ){_cannot} \w",
            rf"\b[A-Za-z_][\w)'`\"]{{1,60}} {_failed}(?:$|[.!:;]"
            r"|,? (?:with|due to|because|at|in|on|for)\b)",
            # the messages of Python's exceptions, and of CUDA's, without a name
            _messages,
            _cuda,
            r"^\W?Error [a-z]{2,20}ing\b|^[A-Z][\w ]{2,60} Failed[.!]{0,3}$",
            r"^size mismatch for \S|\.{3} ?\[?(?:[Ff]ailed|FAILED)\b",
            r"^Mismatched elements: \d|^[a-z]\w{2,20} (['\"`])[^'\"`\n]{1,200}\1 not found\b",
            r"\b(?:[Nn]ot enough|[Ii]nsufficient) (?:\w{2,20} )?(?:memory|space|room|resources)\b",
            NAN,
            # what people and programs say of a mismatch, or of something that is missing
            _mismatch,
            r"\bOP_REQUIRES failed\b|^\|? ?[\w-]{1,60} .{0,60}\| UNAVAILABLE: \S",
            r"\b\w{0,4}[A-Z]{3,12} (?:error|failure)\b",
            r"\b[A-Z]\w{2,12} failure (?:\d|')|\b[A-Z]{3,4} out of memory\b",
            r"\b[A-Z]{3,12}_STATUS_(?!SUCCESS)[A-Z_]{4}|\b[A-Z]{4}_ERROR_[A-Z_]{4}",
            r"^Error occurred when executing [^\n:]{1,80}:$",  # ComfyUI: the message stands below
            r"^(?:[A-Z]\w{1,20} )?[Ee]rror (?:in|at|on|from|during|while) "
            r"[^\n:]{1,120}(?:::[^\n:]{1,80})? ?: \S|\b\w{3,60}\(\) failed\b",
            # a code of Windows, alone
            r"\b(?:[Ee]rror|[Ee]xception|[Cc]rash\w{0,4})\b[^\n]{0,30}\b0x[cC]0[0-9a-fA-F]{6}\b",
            # what a program did not know, or did not expect
            r"^(?:Unknown|Unrecogni[sz]ed|Unexpected|Invalid|Illegal|Undefined|Malformed|Duplicate)"
            r" (?!keys?\b)[a-z][\w-]{1,30}\b",
            r"\b[A-Z]\w{2,60}::\w{2,60} failed\b",
            r"\b[Rr]aise[sd]? (?:an? )?[A-Z]\w{1,60}(?:Error|Exception) [\"'“]",
            # what the driver's initialisation says, and NCCL's only level above INFO
            r"\b[A-Z]{3,4} initialization: \w|^-> (?:[A-Z]{4}|no [A-Z]{4}-capable) ",  # deviceQuery
            r"\bNCCL WARN .{0,200}\b(?:[Ff]ailed|[Ee]rror|[Rr]efused|No route|timed out)\b",
            # xFormers, PyTorch: why each operator cannot be used
            r"^\W?[\w.@-]{1,80}\W? is not supported because:$",
            r"^\[E:\w|\blevel=[\"']?(?:error|ERROR|fatal|FATAL)\b",
            r"^[\w./+-]{1,80}: (?:error|failed|unable|cannot|could not) \w",
        ),
    ),
)
"""How lines read; the first form that fits decides."""
