// The records of a log's failures, what each line reads as, who printed it and when: the twin of
// kbtools/matching/first_lines.py. Its patterns come with the index.

import { strip } from "./cleaning.js";
import { Examination, Patterns } from "./hits.js";
import { Literals } from "./literals.js";
import { expression } from "./pattern.js";

/** What a line tells of the failure; the smaller, the closer it is to the first one. */
export const Weight = Object.freeze({
  CAUSE: 0, HANDLED: 1, DEATH: 2, LOGGED: 3, WITNESS: 4, WRAPPER: 5, AFTERMATH: 6, TOLD: 7, CUT: 8,
});

/** Marks of a quotation. */
const QUOTING = ["`", "\""];
/** How processes end: their forms decide before the texts of products. */
const ENDS = [Weight.AFTERMATH, Weight.DEATH];
const isEnd = (weight) => ENDS.includes(weight);
const COMPILED = [
  "exception", "prose", "guess", "named", "closing", "loud", "level", "statement", "warns", "informs", "warning", "pytest",
  "goes_on", "header", "frame", "destructor", "direct", "handling", "lookup", "quoting", "quotes",
  "time", "heading", "field", "title", "despite", "crash", "aborts",
];

/** Reads lines of any number of logs, by the rules and the texts of an index. */
export class LineReader {
  constructor({ first, texts, rules }) {
    this.rules = first;
    this.hitPatterns = new Patterns(rules);
    this.texts = [
      [Weight.AFTERMATH, "aftermath", texts.aftermath],
      [Weight.WRAPPER, "wrapper", texts.wrappers],
      [Weight.WITNESS, "peer", texts.witnesses],
    ];
    this.automaton = new Literals([...new Set(
      [...first.alarms, ...texts.aftermath, ...texts.wrappers, ...texts.witnesses])]);
    this.forms = first.forms.map(({ weight, kind, patterns }) =>
      [weight, kind, expression(patterns.join("|"))]);
    this.processes = first.processes.map((pattern) => expression(pattern));
    this.namesProcess = first.names_process.map((pattern) => expression(pattern));
    this.patterns = Object.fromEntries(COMPILED.map((name) => [name, expression(first[name])]));
    this.patterns.frames = expression(`${first.stack}|${first.frame}`);
    this.patterns.same = expression(first.same, { flags: "g" });
  }

  /** The lines that may report a failure; of many, the first and the last. */
  alarms(log) {
    const alarms = new Set();
    for (let index = 0; index < log.size; index++)
      if (this.patterns.loud.test(log.prefix(index))) alarms.add(index);
    if (log.lines.isTitled) alarms.add(0);
    for (const starts of this.automaton.occurrences(log.text).values()) {
      let end = -1;
      for (const start of starts) {
        if (start < end) continue;
        const index = log.lineIndex(start);
        alarms.add(index);
        end = log.end(index);
      }
    }
    const lines = [...alarms].sort((left, right) => left - right);
    const most = this.rules.most_lines;
    const last = Math.floor(most / 3);
    return lines.length <= most
      ? lines : [...lines.slice(0, most - last), ...lines.slice(lines.length - last)];
  }

  /** What a line reads as by itself; null where it reports no failure. */
  reading(line, prefix) {
    const { patterns } = this;
    if (!line || patterns.warning.test(line) || patterns.frames.test(line)) return null;
    if (patterns.pytest.test(prefix) && line.startsWith("assert "))
      return { weight: Weight.CAUSE, kind: "assertion", start: 0 };
    const reading = (patterns.guess.test(line) ? null : this.byForm(line, isEnd)) ||
      this.byText(line) || this.byForm(line, (weight) => !isEnd(weight));
    if (reading) {
      const isMild = patterns.warns.test(prefix) ||
        (patterns.informs.test(prefix) && !patterns.exception.test(line));
      const isSoft = reading.weight >= Weight.LOGGED || reading.kind === "refusal";
      return isMild && isSoft && !patterns.despite.test(line) ? null : reading;
    }
    return patterns.level.test(prefix) ? { weight: Weight.LOGGED, kind: "error", start: 0 } : null;
  }

  /** By the forms of some weights. */
  byForm(line, isAsked) {
    for (const [weight, kind, pattern] of this.forms) {
      const match = isAsked(weight) && pattern.exec(line);
      if (match) return { weight, kind, start: match.index };
    }
    return null;
  }

  byText(line) {
    for (const [weight, kind, words] of this.texts)
      for (const word of words)
        if (line.includes(word)) {
          const form = this.byForm(line, (other) => other === weight);
          return { weight, kind: form ? form.kind : kind, start: line.indexOf(word) };
        }
    return null;
  }

  /** The process that a prefix names; empty where it names none. */
  process(prefix) {
    return strip(prefix) ? firstGroup(this.processes, prefix) : "";
  }

  /** The process that a line of text names. */
  namedProcess(line) {
    return firstGroup(this.namesProcess, line);
  }

  /** When a line was printed: what its prefix shows, or that of a line above it by its process. */
  moment(log, index, process) {
    for (let above = index; above > Math.max(index - this.rules.lines_back, -1); above--) {
      const prefix = log.prefix(above);
      const time = prefix.includes(":") ? this.patterns.time.exec(prefix) : null;
      if (time)
        return above === index || ["", process].includes(this.process(prefix)) ? momentOf(time) : null;
    }
    return null;
  }
}

/** Reads the lines of one log. */
export class LogReader {
  constructor(log, lines) {
    this.log = log;
    this.lines = lines;
    this.rules = lines.rules;
    this.patterns = lines.patterns;
    this.examination = new Examination(log, lines.hitPatterns);
  }

  /** The beginning of a line, without the marks of Markdown. */
  line(index) {
    const line = strip(this.log.line(index, this.rules.most_characters));
    return /^(?:`|\*\*(?!\*)|_\*)/.test(line) ? strip(line.replace(/^[`*_]+|[`*_]+$/g, "")) : line;
  }

  /** Whether a block of code begins or ends on a line. */
  isFence(index) {
    const { fence } = this.rules;
    return this.log.line(index, fence.length) === fence;
  }

  /** The text of a record, with the next line where its own ends before the message. */
  text({ line, text }) {
    if (!text.endsWith(":")) return text;
    for (let index = line + 1; index <= line + this.rules.lines_between; index++)
      if (this.line(index)) return `${text} ${this.line(index)}`;
    return text;
  }

  /** What a record says, without the name of an exception and the numbers in it. */
  message(record) {
    const text = this.text(record);
    const colon = text.indexOf(": ");
    const head = colon >= 0 ? text.slice(0, colon) : text;
    let message = colon >= 0 ? text.slice(colon + 2) : "";
    for (const mark of QUOTING)
      if (head.split(mark).length % 2 === 0) message = message.split(mark)[0];
    return (message || text).replace(this.patterns.same, "#").replace(/^[ .`'"*_]+|[ .`'"*_]+$/g, "");
  }

  /** The process that the prefix of a line names. */
  process(index) {
    return this.lines.process(this.log.prefix(index));
  }

  /** The record of a line, or null where it reports no failure. */
  record(index, process = "", closes = false) {
    const { log, patterns, lines } = this;
    const line = this.line(index);
    const prefix = log.prefix(index);
    const isStatement = patterns.statement.test(prefix);
    // the heading of a block of code
    if (isStatement && !line && this.isFence(index + 1)) return null;
    const text = isStatement ? strip(`${strip(prefix)} ${line}`) : line;
    let reading = lines.reading(text, prefix);
    // whatever level the program gave it
    if (!reading && this.isTitle(index)) reading = lines.reading(text, "");
    const isClosing = closes || this.isBelowFrame(index) ||
      (patterns.pytest.test(prefix) && !(index > 0 && patterns.pytest.test(log.prefix(index - 1))));
    if (isClosing && patterns.closing.test(line) && (!reading || reading.weight === Weight.LOGGED))
      reading = { weight: Weight.CAUSE, kind: "exception", start: 0 };
    if (reading && !(isClosing || isStatement || patterns.despite.test(line))) {
      const start = reading.start + log.line(index, this.rules.most_characters).indexOf(line);
      if (this.isNoReport(index, start)) reading = null;
    }
    const isWorded = !reading && index === 0 && log.lines.isTitled;
    if (isWorded && patterns.title.test(line))
      reading = { weight: Weight.WITNESS, kind: "error", start: 0 };
    if (!reading) return null;
    const { kind } = reading;
    if (reading.weight <= Weight.WITNESS && this.goesOn(index)) return null;
    const weight = patterns.prose.test(text) && !strip(prefix) ? Weight.TOLD : reading.weight;
    let printedBy = this.process(index) || process;
    if (weight >= Weight.DEATH) printedBy = printedBy || lines.namedProcess(line);
    const moment = lines.moment(log, index, printedBy);
    return { line: index, text, weight, kind, process: printedBy, moment, isWorded };
  }

  /** Whether a line stands below the last frame of a traceback and its source. */
  isBelowFrame(index) {
    return index > 1 && this.patterns.frame.test(this.line(index - 2)) &&
      this.log.depth(index) < this.log.depth(index - 2);
  }

  /** Whether a line is source, or only mentions a failure, at `start`. */
  isNoReport(index, start) {
    const { log, examination } = this;
    if (this.patterns.pytest.test(log.prefix(index))) return false;
    const offset = log.starts[index];
    if (examination.isCode(offset)) return true;
    return examination.isOnlyMentioned(offset, { start: offset + start, end: log.end(index) });
  }

  /**
   * Whether the program says on a line, or below it, that it goes on. What stands below a title is
   * not said of it.
   */
  goesOn(index) {
    const below = this.isTitle(index) ? 0 : this.rules.lines_below;
    for (let line = index; line <= index + below; line++)
      if (this.patterns.goes_on.test(this.line(line))) return true;
    return false;
  }

  /** Whether a line is a heading of Markdown, or the first line as a title. */
  isTitle(index) {
    return this.patterns.heading.test(this.log.prefix(index)) ||
      (this.log.lines.isTitled && index === 0);
  }
}

function firstGroup(patterns, text) {
  for (const pattern of patterns) {
    const match = pattern.exec(text);
    if (match) return strip(match[1]);
  }
  return "";
}

function momentOf(time) {
  const [month, day] = [Number(time[1] || time[3] || 0), Number(time[2] || time[4] || 0)];
  const [hours, minutes, seconds] = [Number(time[5]), Number(time[6]), Number(time[7])];
  const fraction = Number((time[8] || "").padEnd(6, "0").slice(0, 6));
  return {
    day: 31 * month + day, microseconds: ((hours * 60 + minutes) * 60 + seconds) * 1e6 + fraction,
  };
}
