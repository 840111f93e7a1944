// The records of a log, each with the weight that its place among the others gives it: the twin of
// kbtools/matching/first_links.py, which says why each step is as it is.

import { Weight } from "./first_lines.js";
import { Surroundings, withTold } from "./first_told.js";

const RAISED = ["exception", "assertion", "watchdog", "peer", "wrapper", "aftermath"];
const PRINTED = ["compiler error", "refusal"];
const SECOND = 1e6; // in microseconds

/** The records of a log, in the order of their lines. */
export function linked(reader) {
  const { patterns } = reader;
  const records = new Map();
  const streams = new Map();
  const around = new Surroundings(reader);
  let end = -1;
  for (const index of reader.lines.alarms(reader.log)) {
    const process = processOf(reader, index, records.get(index - 1));
    if (!streams.has(process))
      streams.set(process, {
        last: null, logged: null, aborted: null, header: -1, cut: null, end: -1, link: null,
      });
    const stream = streams.get(process);
    if (index < (process ? stream.end : end)) continue;
    const line = reader.line(index);
    const isDirect = patterns.direct.test(line);
    if (isDirect || patterns.handling.test(line)) {
      stream.link = isDirect;
      continue;
    }
    let record = null;
    if (patterns.header.test(line)) {
      stream.header = index;
      record = closing(reader, index, process);
      stream.cut = record && record.line === index ? index : null;
      stream.end = end = record ? record.line : index;
      const logged = stream.logged === null ? null : records.get(stream.logged);
      const isAbove = logged && index - logged.line <= reader.rules.lines_between;
      if (isAbove && stream.cut === null)
        records.set(logged.line, { ...logged, weight: Weight.WRAPPER });
    } else if (!records.has(index)) record = reader.record(index);
    if (!record || records.has(record.line)) continue;
    if (around.isApart(record.line)) {
      records.set(record.line, record);
      continue;
    }
    record = unquoted(reader, record);
    if (stream.logged !== null && isCheck(reader, records.get(stream.logged), record))
      record = { ...record, weight: Weight.LOGGED };
    else if (isAbort(reader, stream, record)) record = { ...record, weight: Weight.WRAPPER };
    else if (isCrash(reader, stream, record)) {
      record = { ...record, weight: Weight.WITNESS };
      const logged = records.get(stream.logged); // it is no introduction of the crash
      records.set(stream.logged, { ...logged, weight: Weight.LOGGED });
    }
    if (patterns.aborts.test(line)) stream.aborted = index;
    if (stream.cut !== null && isSource(reader, record, stream.cut)) continue;
    if (stream.cut !== null && record.line > stream.cut && RAISED.includes(record.kind)) {
      records.delete(stream.cut);
      stream.cut = null;
    }
    if (stream.last !== null) {
      const last = records.get(stream.last);
      if (isRest(reader, last, record, stream)) continue;
      const [earlier, later] = related(reader, last, record, stream);
      records.set(earlier.line, earlier);
      record = later;
    }
    if (record.weight === Weight.LOGGED) stream.logged = record.line;
    if (RAISED.includes(record.kind) && record.line !== stream.cut) stream.last = record.line;
    records.set(record.line, record);
  }
  const inOrder = [...records.values()].sort((left, right) => left.line - right.line);
  return withTold(inOrder, around, reader);
}

/** Who printed a line; a traceback without a prefix is of who logged the line above it. */
const processOf = (reader, index, above) =>
  reader.process(index) ||
  (above?.weight === Weight.LOGGED && reader.patterns.header.test(reader.line(index)) ? above.process : "");

/** An exception and the next record of its process, with the weights that they have together. */
function related(reader, earlier, later, stream) {
  if (stream.link !== null && RAISED.includes(later.kind)) {
    const isLookup = reader.patterns.lookup.test(earlier.text);
    const isDirect = stream.link;
    stream.link = null;
    if (isLookup && !isDirect && later.weight === Weight.CAUSE)
      return [{ ...earlier, weight: Weight.HANDLED }, later];
    return [earlier, { ...later, weight: Math.max(later.weight, Weight.WRAPPER) }];
  }
  if (later.weight > Weight.LOGGED || !isInMessage(reader, earlier, later, stream))
    return [earlier, later];
  if (PRINTED.includes(later.kind))
    return [earlier.weight === Weight.CAUSE ? { ...earlier, weight: Weight.WRAPPER } : earlier, later];
  return [earlier, { ...later, weight: Math.max(later.weight, earlier.weight, Weight.LOGGED) }];
}

/** Whether a line is only the level of a logger before the rest of an exception's message. */
function isRest(reader, earlier, later, stream) {
  const { exception } = reader.patterns;
  const isWitness = earlier.kind === "peer" && exception.test(earlier.text);
  if (isWitness && later.kind === "peer" && later.line === earlier.line + 1)
    return !exception.test(later.text);
  const raised = isWitness ? { ...earlier, kind: "exception" } : earlier;
  return later.kind === "error" && isInMessage(reader, raised, later, stream);
}

/** Whether a line that was logged as an error is source of a traceback that is cut off. */
function isSource({ log, rules }, record, cut) {
  const isNear = cut < record.line && record.line <= cut + rules.lines_of_traceback;
  const isSource = record.kind === "error" && !record.text.startsWith("raise ");
  return isSource && isNear && log.depth(record.line) > log.depth(cut);
}

/** Whether an assertion of C or C++ notices the error that was logged just above it. */
const isCheck = ({ patterns, rules }, logged, record) =>
  logged && logged.weight === Weight.LOGGED && record.kind === "assertion" &&
  record.line - logged.line <= rules.lines_between && !isLater(logged, record) &&
  !patterns.exception.test(record.text);

/** Whether a signal is the one by which the process has ended itself. */
const isAbort = ({ rules }, stream, record) =>
  record.weight === Weight.DEATH && stream.aborted !== null &&
  record.line - stream.aborted <= rules.lines_of_message;

/** Whether a crash of code in C follows from what that code has said just above it. */
const isCrash = ({ patterns, rules }, stream, record) =>
  stream.logged !== null && patterns.crash.test(record.text) &&
  stream.header - stream.logged <= rules.lines_between;

/** Whether a record is one of the further lines of an exception's message. */
const isInMessage = (reader, earlier, later, stream) =>
  ["exception", "assertion"].includes(earlier.kind) && stream.header < earlier.line &&
  later.line - earlier.line <= reader.rules.lines_of_message && !isLater(earlier, later);

/** Whether more than a second lies between two records, by their times. */
const isLater = (earlier, later) =>
  earlier.moment !== null && later.moment !== null &&
  Math.abs(later.moment.microseconds - earlier.moment.microseconds) > SECOND;

/** The record of the exception that closes a traceback, which begins on the line `header`. */
function closing(reader, header, processOfHeader) {
  const { log, patterns, rules } = reader;
  const above = reader.line(header - 1);
  const process = processOfHeader || reader.lines.namedProcess(above);
  const depth = log.depth(header);
  const end = Math.min(header + 1 + 4 * rules.lines_of_traceback, log.size);
  let isSource = false;
  let steps = 0;
  let index = header + 1;
  for (; index < end; index++) {
    const line = reader.line(index);
    if (!line || !["", process].includes(reader.process(index))) continue;
    steps += 1;
    if (steps > rules.lines_of_traceback || patterns.header.test(line)) return null;
    if (patterns.frame.test(line)) isSource = true;
    else if (log.depth(index) > depth || (isSource && !patterns.exception.test(line))) isSource = false;
    else break;
  }
  if (index >= end) return cut(reader, header, process);
  if (patterns.goes_on.test(above)) return null;
  const record = reader.record(index, process, true);
  if (!record && !patterns.closing.test(reader.line(index))) return cut(reader, header, process);
  if (record && patterns.destructor.test(above))
    return { ...record, weight: Weight.AFTERMATH, kind: "aftermath" };
  return record;
}

/** The record of a traceback whose exception is not in the text. */
function cut(reader, header, process) {
  const moment = reader.lines.moment(reader.log, header, process);
  return {
    line: header, text: reader.line(header), weight: Weight.CUT, kind: "wrapper", process, moment,
    isWorded: false,
  };
}

/** The record of an exception; a wrapper if its message is the exception below it. */
function unquoted(reader, record) {
  const { patterns, rules } = reader;
  if (record.weight !== Weight.CAUSE || !patterns.quotes.test(record.text)) return record;
  for (let index = record.line + 1; index <= record.line + rules.lines_between; index++) {
    const line = reader.line(index);
    if (!line) continue;
    return patterns.quoting.test(line)
      ? { ...record, weight: Weight.WRAPPER, kind: "wrapper" } : record;
  }
  return record;
}
