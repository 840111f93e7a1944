// One cleaned log, and whether a signature whose literal occurs in it reports its failure there: the
// twin of kbtools/matching/hits.py, which says why each step is as it is.

import { Mentions } from "./mentions.js";
import { expression } from "./pattern.js";

const REACH = 1000; // of a repeat in a `near`: it runs on all of the text, and RE2 is not here

/** What the line of a hit reads as; the smaller, the more the hit counts. */
export const LineKind = Object.freeze({ ERROR: 0, OUTPUT: 1, WARNING: 2, DEALT_WITH: 3 });
/** Whether the `near` of a signature occurs in the log; the smaller, the more the hit counts. */
export const NearText = Object.freeze({ PRESENT: 0, NOT_REQUIRED: 1, ABSENT: 2 });

/** The rules of an index, compiled. */
export class Patterns {
  constructor(rules) {
    this.rules = rules;
    this.error = expression(rules.error);
    this.warning = expression(rules.warning);
    this.code = expression(rules.code);
    this.exception = expression(rules.exception, { lines: true });
    this.glued = expression(rules.glued);
    this.frame = expression(rules.frame);
    this.raising = expression(rules.raising);
    this.marks = expression(rules.marks);
    this.locationLine = expression(rules.place);
    this.mentions = new Mentions(rules);
    this.compiled = new Map();
  }

  /** A pattern of a signature; `most` limits its repeats, 0 does not. */
  pattern(source, most) {
    const key = `${most} ${source}`;
    if (!this.compiled.has(key))
      this.compiled.set(key, expression(source, { lines: true, most, flags: "u" }));
    return this.compiled.get(key);
  }
}

/** Of the hits of one article the smallest is the best evidence for it. */
export const strength = ({ signature, kind, near, offset }) =>
  [Boolean(signature.wraps), kind, near, Boolean(signature.shared), !signature.regex, offset];

/** What is worked out once for a log, whichever signatures occur in it. */
export class Examination {
  constructor(log, patterns) {
    this.log = log;
    this.patterns = patterns;
    this.present = new Map();
    this.belowFrame = new Map();
    this.piped = null;
    this.line = (index, most) => log.line(index, most);
    this.prefix = (offset) => log.prefix(log.lineIndex(offset));
  }

  /** The hit of a signature, if the log reports its failure where its literal occurs. */
  hit(entry, signature, offset) {
    const span = this.matchedSpan(signature, offset);
    if (!span || this.isCode(offset) || this.isOnlyMentioned(offset, span)) return null;
    const near = this.near(signature);
    if (signature.shared && near === NearText.ABSENT) return null;
    if (signature.unless && this.occurs(signature.unless)) return null;
    return { entry, signature, offset, kind: this.lineKind(offset), near };
  }

  /** Whether a line has the text of a failure, from `start` to `end`, and reports none. */
  isOnlyMentioned(offset, { start, end }) {
    const { mentions, rules } = this.patterns;
    const [line, first] = [this.log.excerpt(offset), this.log.excerptStart(offset)];
    const before = line.slice(0, Math.max(start - first, 0));
    const after = line.slice(Math.max(end - first, 0));
    if (mentions.isMention(before + rules.mark + after, this.isTitle(offset))) return true;
    return mentions.isQuiet(this.prefix(offset), line) && !this.isPiped();
  }

  /** Whether a place lies in the first line of a text, and that is a title. */
  isTitle(offset) {
    if (this.log.lineIndex(offset)) return false;
    const isAlone = this.log.size > 1 && !this.line(1, this.patterns.rules.line_begin).trim();
    return isAlone || this.log.lines.isTitled;
  }

  /** Whether the levels of this log carry no information. */
  isPiped() {
    if (this.piped === null)
      this.piped = this.patterns.mentions.isPiped(this.log.text, this.prefix);
    return this.piped;
  }

  /** Whether the `near` of a signature occurs anywhere in the log. */
  near(signature) {
    if (!signature.near) return NearText.NOT_REQUIRED;
    return this.occurs(signature.near) ? NearText.PRESENT : NearText.ABSENT;
  }

  /** Whether a `near` or an `unless` occurs anywhere in the log. */
  occurs(context) {
    if (!this.present.has(context)) {
      const pattern = this.patterns.pattern(context, REACH);
      const { log } = this;
      this.present.set(
        context, pattern.test(log.text) || (log.joined && pattern.test(log.byLines)));
    }
    return this.present.get(context);
  }

  /** The start and the end of the text that a signature matches; null where its regex does not. */
  matchedSpan(signature, offset) {
    const end = offset + signature.literal.length;
    if (!signature.regex) return { start: offset, end };
    const { lines, characters } = this.patterns.rules;
    const around = this.log.around(offset, lines, characters);
    const match = this.patterns.pattern(signature.regex, 0).exec(around.text);
    if (!match) return null;
    const first = around.start + match.index;
    const last = first + match[0].length;
    return first <= offset && offset < last
      ? { start: first, end: Math.max(last, end) } : { start: offset, end };
  }

  /** What a line reads as. Its prefix may say so, too: a level such as ERROR. */
  lineKind(offset) {
    const { error, warning, mentions, rules } = this.patterns;
    const [line, index] = [this.log.excerpt(offset), this.log.lineIndex(offset)];
    const prefixed = this.log.prefixedLine(index).slice(0, rules.prefix);
    if (mentions.isDealtWith(index, this.line)) return LineKind.DEALT_WITH;
    if (error.test(line) || error.test(prefixed)) return LineKind.ERROR;
    return warning.test(line) || warning.test(prefixed) ? LineKind.WARNING : LineKind.OUTPUT;
  }

  /** Whether a line is source that a traceback shows. */
  isCode(offset) {
    const before = this.log.text.slice(this.log.excerptStart(offset), offset);
    if (this.patterns.glued.test(before)) return false;
    const index = this.log.lineIndex(offset);
    if (this.isLastRaise(index)) return false;
    if (!this.belowFrame.has(index)) this.belowFrame.set(index, this.isBelowFrame(index));
    return this.belowFrame.get(index) || this.patterns.code.test(this.log.excerpt(offset));
  }

  /** Whether a line below a frame raises what its traceback ends with, and nothing follows it. */
  isLastRaise(index) {
    const { log, patterns } = this;
    const text = (line) => log.line(line, patterns.rules.line_begin);
    if (!patterns.raising.test(text(index).trim()) || !patterns.frame.test(text(index - 1)) ||
        log.indent(index) < log.indent(index - 1)) return false;
    let below = text(index + 1).trim();
    if (patterns.marks.test(below)) below = text(index + 2).trim();
    return !below || below.startsWith(patterns.rules.fence);
  }

  isBelowFrame(index) {
    const { log, patterns } = this;
    const above = log.line(index - 1, patterns.rules.line_begin);
    const isBelow = patterns.frame.test(above) && log.indent(index) >= log.indent(index - 1);
    return (isBelow && !patterns.exception.test(log.line(index, patterns.rules.line_begin))) ||
      (patterns.locationLine.test(above) && log.depth(index) > log.depth(index - 1));
  }
}
