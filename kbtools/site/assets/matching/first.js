// What failed first: the line of a log that the other failures follow from. The twin of
// kbtools/matching/first.py.

import { LogReader, Weight } from "./first_lines.js";
import { linked } from "./first_links.js";

const WHY = {
  [Weight.HANDLED]: "this exception was being handled when another one was raised",
  [Weight.LOGGED]: "it was logged as an error, and nothing in this text ended with it",
  [Weight.WITNESS]: "it only says that another process, or a connection, had stopped: look for an" +
    " earlier line, or for the logs of the other processes",
  [Weight.WRAPPER]: "it reports a failure that is not in this text: show the lines above it, or the" +
    " log of the process that it names",
  [Weight.TOLD]: "it is part of a sentence: show the log itself",
  [Weight.CUT]: "the text ends before the exception of this traceback: show the lines below it",
  [Weight.AFTERMATH]: "it was printed on the way out: show the lines above it",
};

const WHY_TITLE = "it stands in a title, and not in what is below: show the log itself";
const WHY_OTHER_TITLE = "the title names another failure";

/** What failed first in a log (`first`, as Python's `FirstFailure` is in JSON; null where nothing
    failed), and which lines only noticed it (`noticed`). */
export function failures(log, lines) {
  const reader = new LogReader(log, lines);
  const records = linked(reader);
  if (!records.length) return { first: null, noticed: new Set(), isWorded: false };
  const weight = records.reduce((least, record) => Math.min(least, record.weight), Infinity);
  const best = records.filter((record) => record.weight === weight);
  const untitled = weight === Weight.TOLD ? best.filter(({ isTitle }) => !isTitle) : best;
  const first = earliest(untitled.length ? untitled : best);
  const others = records.filter((record) => record !== first);
  const echoes = others.filter((record) => isEcho(record, first, lines));
  const noticed = [...noticedOf(others, first)];
  const why = doubt(first, others, reader);
  const answer = {
    line: numberOf(log, first),
    text: log.lines.widen(reader.text(first)),
    process: log.lines.widen(first.process),
    kind: first.kind,
    echoes: [...new Set(echoes.map((record) => numberOf(log, record)))]
      .slice(0, lines.rules.most_echoes),
    confident: !why,
    why,
  };
  const lineNumbers = noticed.map((record) => numberOf(log, record));
  return { first: answer, noticed: new Set(lineNumbers), isWorded: first.isWorded };
}

/** The line of a record, from 1, in the log as it was pasted. */
const numberOf = (log, record) => log.lineNumber(log.starts[record.line]);

/** The first of these records: by their times where all processes show them, else by lines. */
function earliest(records) {
  const ofProcess = new Map();
  for (const record of records)
    if (!ofProcess.has(record.process)) ofProcess.set(record.process, record);
  const rivals = [...ofProcess.values()];
  if (!areTimed(rivals)) return rivals[0];
  return rivals.reduce((best, record) => (isBefore(record, best) ? record : best));
}

function isBefore({ moment, line }, other) {
  if (moment.day !== other.moment.day) return moment.day < other.moment.day;
  if (moment.microseconds !== other.moment.microseconds)
    return moment.microseconds < other.moment.microseconds;
  return line < other.line;
}

/** Whether the times of records can be compared. */
const areTimed = (records) =>
  records.every(({ moment }) => moment !== null) &&
  new Set(records.map(({ moment }) => moment.day > 0)).size === 1;

/** Whether a record repeats the first failure, or follows from it. */
const isEcho = (record, first, lines) =>
  (record.weight > first.weight && !(record.weight === Weight.LOGGED && record.line < first.line)) ||
  isSame(record, first, lines);

/** The records that only noticed the first failure, if that was a failure of its own. */
function* noticedOf(others, first) {
  let isLater = false;
  for (const record of first.weight < Weight.LOGGED ? others : []) {
    if (record.weight !== Weight.WITNESS) continue;
    if (record.moment || record.line > first.line) // else it is as the one above it
      isLater = earliest([first, record].sort((one, other) => one.line - other.line)) === first;
    if (isLater) yield record;
  }
}

/** Whether the message of the first failure is part of a record. */
function isSame(record, first, { patterns: { same } }) {
  const colon = first.text.indexOf(": ");
  const text = (colon >= 0 && first.text.slice(colon + 2)) || first.text;
  return record.text.replace(same, "#").includes(text.replace(same, "#"));
}

/** Why a first failure is no confident answer; empty if it is. */
function doubt(first, others, reader) {
  if (first.isWorded) return WHY_TITLE;
  if (WHY[first.weight]) return WHY[first.weight];
  if (first.isTitle && others.length) return WHY_TITLE;
  if (others.some((record) => isOtherTitle(record, first, reader.lines))) return WHY_OTHER_TITLE;
  const { gap, gapAt } = reader.log.lines;
  if (gap && first.line >= gapAt) return "lines in the middle of this long log were not read";
  const rival = others.find((record) => isRival(record, first, reader.lines));
  if (rival) return `line ${numberOf(reader.log, rival)} reads as a failure of its own`;
  const last = others.reduce((line, record) => Math.max(line, record.line), first.line);
  return reader.log.size - last > reader.rules.lines_after
    ? "the program printed much more after it" : "";
}

/** Whether a record is a title that has an exception of its own. */
function isOtherTitle(record, first, lines) {
  if (!record.isTitle || !lines.patterns.exception.test(record.text)) return false;
  return !isSame(record, first, lines) && !isSame(first, record, lines);
}

/** Whether a record may have come about without the first failure. */
function isRival(record, first, lines) {
  if (first.weight === Weight.DEATH) { // it may have followed from what was said just above it
    const above = first.line - record.line;
    return above > 0 && above <= lines.rules.lines_between &&
      record.weight === Weight.LOGGED && record.process === first.process;
  }
  if (record.weight > first.weight) return false;
  if (first.kind === "compiler error" && record.kind === "compiler error") return false;
  return !isSame(record, first, lines);
}
