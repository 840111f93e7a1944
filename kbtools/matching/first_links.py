"""The records of a log, each with the weight that its place among the others gives it.

A traceback is closed by its exception; an exception that is chained to an earlier one follows
from it; an exception whose message quotes another one, from a worker, say, follows from that. The
twin of this module is `site/assets/matching/first_links.js`.
"""

from __future__ import annotations

from msgspec.structs import replace

from kbtools.matching.first_forms import Weight
from kbtools.matching.first_lines import LogReader, Record
from kbtools.matching.first_told import Surroundings, with_told

RAISED = ("exception", "assertion", "watchdog", "peer", "wrapper", "aftermath")
"""Kinds of a record that may be an exception."""


RAISING = "raise "
"""Begins the source of a traceback's last frame, which is a record where nothing follows it."""
SECOND = 1_000_000
"""In microseconds: a message of several lines is printed in less."""


class Stream:
    """What one process has printed so far."""

    def __init__(self) -> None:
        self.last: int | None = None
        """The line of its last exception."""
        self.logged: int | None = None
        """The last line that was logged as an error."""
        self.aborted: int | None = None
        """The last line on which it said that it ends itself."""
        self.header = -1
        """The line on which its last traceback begins."""
        self.cut: int | None = None
        """That line, as long as the exception below it was not met."""
        self.end = -1
        """The line on which that traceback ends."""
        self.link: bool | None = None
        """Whether the next exception is raised from the last; None where they are not linked."""


def linked(log: LogReader) -> list[Record]:
    """The records of a log, in the order of their lines."""
    records: dict[int, Record] = {}
    streams: dict[str, Stream] = {}
    around = Surroundings(log)
    end = -1  # of the traceback that was begun last, by whichever process
    for index in log.lines.alarms(log.log):
        process = _process(log, index, records)
        stream = streams.setdefault(process, Stream())
        if index < (stream.end if process else end):
            continue  # within a traceback
        line = log.line(index)
        if log.patterns.direct.search(line) or log.patterns.handling.search(line):
            stream.link = log.patterns.direct.search(line) is not None
            continue
        if log.patterns.header.search(line):
            stream.header = index
            record = _closing(log, index, process)
            stream.cut = index if record is not None and record.line == index else None
            stream.end = end = record.line if record else index
            last = None if stream.logged is None else records.get(stream.logged)
            between = 0 if last is None else index - last.line
            if last is not None and stream.cut is None and between <= log.rules.lines_between:
                records[last.line] = replace(last, weight=Weight.WRAPPER)  # it introduces this
        else:
            record = log.record(index) if index not in records else None
        if record is None or record.line in records:
            continue
        if around.is_apart(record.line):
            records[record.line] = record
            continue
        record = _unquoted(log, record)
        if stream.logged is not None and _is_check(log, records.get(stream.logged), record):
            record = replace(record, weight=Weight.LOGGED)
        elif _is_abort(log, stream, record):
            record = replace(record, weight=Weight.WRAPPER)
        elif _is_crash(log, stream, record):
            record = replace(record, weight=Weight.WITNESS)
            if stream.logged is not None:  # it is no introduction of the crash
                records[stream.logged] = replace(records[stream.logged], weight=Weight.LOGGED)
        if log.patterns.aborts.search(line):
            stream.aborted = index
        if stream.cut is not None and _is_source(log, record, stream.cut):
            continue
        if stream.cut is not None and record.line > stream.cut and record.kind in RAISED:
            del records[stream.cut]  # in a form that `_closing` does not know
            stream.cut = None
        earlier = None if stream.last is None else records[stream.last]
        if earlier is not None and _is_rest(log, earlier, record, stream):
            continue
        if earlier is not None:
            earlier, record = _related(log, earlier, record, stream)
            records[earlier.line] = earlier
        if record.weight is Weight.LOGGED:
            stream.logged = record.line
        if record.kind in RAISED and record.line != stream.cut:
            stream.last = record.line
        records[record.line] = record
    in_order = sorted(records.values(), key=lambda record: record.line)
    return with_told(in_order, around, log)


def _process(log: LogReader, index: int, records: dict[int, Record]) -> str:
    """Who printed a line; a traceback without a prefix is of who logged the line above it."""
    above = records.get(index - 1)
    if above and above.weight is Weight.LOGGED and log.patterns.header.search(log.line(index)):
        return log.process(index) or above.process
    return log.process(index)


def _related(
    log: LogReader, earlier: Record, later: Record, stream: Stream
) -> tuple[Record, Record]:
    """An exception and the next record of its process, with the weights that they have together."""
    if stream.link is not None and later.kind in RAISED:
        is_lookup = log.patterns.lookup.search(earlier.text) is not None
        is_direct, stream.link = stream.link, None
        if is_lookup and not is_direct and later.weight is Weight.CAUSE:
            return replace(earlier, weight=Weight.HANDLED), later
        return earlier, replace(later, weight=max(later.weight, Weight.WRAPPER))
    if later.weight > Weight.LOGGED or not _is_in_message(log, earlier, later, stream):
        return earlier, later
    if later.kind in ("compiler error", "refusal") and earlier.weight is Weight.CAUSE:
        return replace(earlier, weight=Weight.WRAPPER), later  # it shows what a compiler printed
    if later.kind in ("compiler error", "refusal"):
        return earlier, later
    return earlier, replace(later, weight=max(later.weight, earlier.weight, Weight.LOGGED))


def _is_rest(log: LogReader, earlier: Record, later: Record, stream: Stream) -> bool:
    """Whether a line is only the level of a logger before the rest of an exception's message."""
    is_witness = earlier.kind == "peer" and log.patterns.exception.search(earlier.text) is not None
    if is_witness and later.kind == "peer" and later.line == earlier.line + 1:
        return log.patterns.exception.search(later.text) is None
    if is_witness:
        earlier = replace(earlier, kind="exception")
    return later.kind == "error" and _is_in_message(log, earlier, later, stream)


def _is_source(log: LogReader, record: Record, cut: int) -> bool:
    """Whether a line that was logged as an error is source of a traceback that is cut off."""
    is_near = cut < record.line <= cut + log.rules.lines_of_traceback
    is_source = record.kind == "error" and not record.text.startswith(RAISING)
    return is_source and is_near and log.log.depth(record.line) > log.log.depth(cut)


def _is_check(log: LogReader, logged: Record | None, record: Record) -> bool:
    """Whether an assertion of C or C++ notices the error that was logged just above it."""
    if logged is None or logged.weight is not Weight.LOGGED or record.kind != "assertion":
        return False
    is_near = record.line - logged.line <= log.rules.lines_between
    return is_near and not (_is_later(logged, record) or log.patterns.exception.search(record.text))


def _is_abort(log: LogReader, stream: Stream, record: Record) -> bool:
    """Whether a signal is the one by which the process has ended itself."""
    if record.weight is not Weight.DEATH or stream.aborted is None:
        return False
    return record.line - stream.aborted <= log.rules.lines_of_message


def _is_crash(log: LogReader, stream: Stream, record: Record) -> bool:
    """Whether a crash of code in C follows from what that code has said just above it."""
    if stream.logged is None or not log.patterns.crash.search(record.text):
        return False
    return stream.header - stream.logged <= log.rules.lines_between


def _is_in_message(log: LogReader, earlier: Record, later: Record, stream: Stream) -> bool:
    """Whether a record is one of the further lines of an exception's message."""
    return (
        earlier.kind in ("exception", "assertion")
        and stream.header < earlier.line
        and later.line - earlier.line <= log.rules.lines_of_message
        and not _is_later(earlier, later)
    )


def _is_later(earlier: Record, later: Record) -> bool:
    """Whether more than a second lies between two records, by their times."""
    if earlier.moment is None or later.moment is None:
        return False
    return abs(later.moment.microseconds - earlier.moment.microseconds) > SECOND


def _closing(log: LogReader, header: int, process: str) -> Record | None:
    """The record of the exception that closes a traceback, which begins on the line `header`."""
    above = log.line(header - 1)
    process = process or log.lines.named_process(above)
    depth, is_source = log.log.depth(header), False
    steps = 0
    last = min(header + 1 + 4 * log.rules.lines_of_traceback, log.log.size)
    for index in range(header + 1, last):
        line = log.line(index)
        if not line or log.process(index) not in ("", process):
            continue
        steps += 1
        if steps > log.rules.lines_of_traceback or log.patterns.header.search(line):
            return None
        is_deeper = log.log.depth(index) > depth
        if log.patterns.frame.search(line):
            is_source = True
        elif is_deeper or (is_source and not log.patterns.exception.search(line)):
            is_source = False  # at the depth of its frame, if the text lost its indentation
        else:
            break
    else:
        return _cut(log, header, process)
    if log.patterns.goes_on.search(above):
        return None
    record = log.record(index, process, closes=True)
    if record is None and not log.patterns.closing.search(line):
        return _cut(log, header, process)
    if record is not None and log.patterns.destructor.search(above):
        return replace(record, weight=Weight.AFTERMATH, kind="aftermath")
    return record


def _cut(log: LogReader, header: int, process: str) -> Record:
    """The record of a traceback whose exception is not in the text."""
    moment = log.lines.moment(log.log, header, process)
    return Record(header, log.line(header), Weight.CUT, "wrapper", process, moment)


def _unquoted(log: LogReader, record: Record) -> Record:
    """The record of an exception; a wrapper if its message is the exception below it."""
    if record.weight is not Weight.CAUSE or not log.patterns.quotes.search(record.text):
        return record
    for index in range(record.line + 1, record.line + 1 + log.rules.lines_between):
        if line := log.line(index):
            if log.patterns.quoting.search(line):
                return replace(record, weight=Weight.WRAPPER, kind="wrapper")
            break
    return record
