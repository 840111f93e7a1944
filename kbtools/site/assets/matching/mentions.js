// Who only speaks of an error has not got it, and what a summary cut off: the twins of
// kbtools/matching/mentions.py and truncated.py. Their patterns come with the index.

import { expression } from "./cleaning.js";

const MARK = "\0";
const BEFORE = 60; // characters before a quotation mark that may introduce what is quoted
const LONG = 2000; // of a line of a summary
const DOTS = "...\n";

/** Whether a line only speaks of a failure, for the rules of an index. */
export class Quoting {
  constructor(rules) {
    this.quotes = rules.quotes.map((one) => expression(one));
    this.introduces = expression(rules.introduces);
    this.mentions = rules.mentions.map((one) => expression(one));
    this.quiet = expression(rules.quiet);
    this.quietRecord = expression(rules.quiet_record);
    this.loud = expression(rules.loud);
    this.piped = expression(rules.piped, { lines: true, flags: "g" });
    this.alarms = rules.alarms;
    this.dealtWith = expression(rules.dealt_with);
    this.rules = rules;
  }

  /** Whether a program says that it goes on, around the exception whose message is on a line. */
  isDealtWith(log, index) {
    const { above, below, near, traceback } = this.rules;
    for (let i = index + 1; i <= index + below; i++)
      if (this.dealtWith.test(log.line(i, near))) return true;
    for (let i = index; i > Math.max(index - above, 0); i--)
      if (log.line(i, near).startsWith(traceback)) return this.dealtWith.test(log.line(i - 1, near));
    return false;
  }

  /** Whether the line of a place, where the text from `start` to `end` was found, does. */
  isMention(log, at, { start, end }) {
    const [line, begins] = [log.excerpt(at), log.excerptStart(at)];
    const [before, after] = [line.slice(0, Math.max(start - begins, 0)), line.slice(Math.max(end - begins, 0))];
    const said = before + MARK + after;
    if (this.mentions.some((one) => one.test(said))) return true;
    const isQuoted = this.quotes.some((one) => {
      const found = one.exec(said);
      return found && !this.introduces.test(said.slice(Math.max(found.index - BEFORE, 0), found.index));
    });
    if (isQuoted) return true;
    const isCalm = this.isCalm(log.before(log.indexOf(at))) || this.quietRecord.test(line);
    return isCalm && !this.loud.test(line) && !this.isPiped(log);
  }

  isCalm(before) {
    return this.quiet.test(before) || this.quietRecord.test(before);
  }

  /** Whether a log's levels say nothing: all that another program printed has one that is calm. */
  isPiped(log) {
    if (log.piped === undefined) {
      log.piped = false;
      let left = this.alarms;
      for (const { index } of log.text.matchAll(this.piped)) {
        if (left-- === 0 || log.piped) break;
        log.piped = this.isCalm(log.before(log.indexOf(index)));
      }
    }
    return log.piped;
  }
}

/** The literals whose beginning stands at the end of a cut line, as `[number, place]`. */
export function* shortened(text, literals, rules) {
  const summary = expression(rules.summary);
  const pieces = (text.endsWith("\n") ? text : `${text}\n`).split(DOTS).slice(0, -1);
  let at = 0;
  const lines = pieces.map((piece) => {
    const begins = at + piece.lastIndexOf("\n") + 1;
    at += piece.length + DOTS.length;
    return [begins, at - 1];
  });
  for (const [begins, ends] of lines.slice(-rules.summary_most)) {
    const line = text.slice(begins, ends);
    const found = ends - begins < LONG ? summary.exec(line) : null;
    if (!found) continue;
    const said = found[1];
    const starts = line.length - DOTS.length + 1 - said.length;
    for (const [number, literal] of literals.entries()) {
      const left = said.lastIndexOf(literal.slice(0, rules.summary_least));
      if (left >= 0 && said.length - left < literal.length && literal.startsWith(said.slice(left)))
        yield [number, begins + starts + left];
    }
  }
}
