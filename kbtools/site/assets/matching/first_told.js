// What a person wrote around a log: titles, sentences and check lists that repeat its failure. The
// twin of kbtools/matching/first_told.py.

import { strip } from "./cleaning.js";
import { Weight } from "./first_lines.js";

/** Which lines of a passage a person wrote, as far as its form shows it. */
export class Surroundings {
  constructor(reader) {
    this.reader = reader;
    this.log = reader.log;
    this.fences = null;
    this.first = null;
  }

  /** Whether a line is a heading of Markdown. */
  isTitle(line) {
    if (this.reader.patterns.heading.test(this.log.prefix(line))) return !this.isInFence(line);
    return this.log.lines.isTitled && line === this.firstLine();
  }

  /** Whether a line is a title, a title without a mark, or an item of a check list. */
  isApart(line) {
    if (this.isTitle(line)) return true;
    if (/[^ \t*-]/.test(this.log.prefix(line))) return false;
    if (this.reader.patterns.field.test(this.reader.line(line))) return true;
    return line === this.firstLine() && this.isParagraph(line);
  }

  /** Whether a line stands outside of the blocks of code of a passage, below no traceback. */
  isOutside(line) {
    const isOutside = this.allFences().length > 0 && !this.isInFence(line);
    return isOutside && !this.log.depth(Math.max(line - 1, 0));
  }

  /** Whether what stands below a line is no part of its text. */
  isParagraph(line) {
    const { reader } = this;
    if (reader.isFence(line + 1)) return true;
    const below = reader.line(line + 2);
    const isLinked = reader.patterns.direct.test(below) || reader.patterns.handling.test(below);
    return !reader.line(line + 1) && !isLinked;
  }

  isInFence(line) {
    return this.allFences().filter((fence) => fence < line).length % 2 === 1;
  }

  /** The lines that begin or end a block of code; of many, the first. */
  allFences() {
    if (this.fences) return this.fences;
    const { text, starts } = this.log;
    const { fence, most_fences: most } = this.reader.rules;
    this.fences = [];
    let at = text.indexOf(fence);
    while (at >= 0 && this.fences.length < most) {
      const line = this.log.lineIndex(at);
      if (starts[line] === at) this.fences.push(line);
      at = text.indexOf(fence, this.log.end(line));
    }
    return this.fences;
  }

  /** The first line that is not blank. */
  firstLine() {
    if (this.first !== null) return this.first;
    this.first = 0;
    for (let line = 0; line < this.log.size; line++)
      if (strip(this.log.prefixedLine(line))) {
        this.first = line;
        break;
      }
    return this.first;
  }
}

/** The records of a log, where those that a person wrote weigh least. */
export function withTold(records, around, reader) {
  const ofLog = records.filter(({ line }) => !around.isApart(line));
  const best = ofLog.length ? Math.min(...ofLog.map(({ weight }) => weight)) : Weight.TOLD;
  let candidates = reader.rules.most_told;
  const { named } = reader.patterns;
  const isNamed = ofLog.some(({ weight, text }) => weight === Weight.TOLD && named.test(text));
  return records.map((record) => {
    const isApart = around.isApart(record.line);
    if (!candidates || !(isApart || around.isOutside(record.line))) return record;
    candidates--;
    const isTitle = around.isTitle(record.line);
    const isBelow = best <= Math.max(record.weight, Weight.LOGGED);
    const isVague = isNamed && record.weight > Weight.CAUSE && !named.test(record.text);
    const isTold = (isTitle && (isBelow || isVague)) || isRepeated(
      record, ofLog.filter(({ line }) => isApart || !around.isOutside(line)), reader);
    return { ...record, weight: isTold ? Weight.TOLD : record.weight, isTitle };
  });
}

/** Whether a line of the log, below a record, has the same text. */
function isRepeated(record, ofLog, reader) {
  const text = reader.message(record);
  if (!text) return false;
  return ofLog.some((other) => {
    if (other.line <= record.line) return false;
    // an exception is not repeated by a sentence about it
    if (record.weight === Weight.CAUSE && other.weight === Weight.TOLD) return false;
    const message = reader.message(other);
    return message.includes(text) ||
      (message.length >= reader.rules.least_repeated && text.includes(message));
  });
}
