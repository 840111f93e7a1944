// Lines that mention an error without reporting one: the twin of kbtools/matching/mentions.py. Its
// patterns come with the index.

import { expression } from "./pattern.js";

/** What recognises mentions, by the rules of an index. */
export class Mentions {
  constructor(rules) {
    this.rules = rules;
    this.quotes = rules.quotes.map((pattern) => expression(pattern));
    this.introduces = expression(rules.introduces);
    this.follows = expression(rules.follows);
    this.span = expression(rules.span);
    this.pasted = expression(rules.pasted);
    this.mentions = rules.mentions.map((pattern) => expression(pattern));
    this.quiet = expression(rules.quiet);
    this.quietRecord = expression(rules.quiet_record);
    this.loud = expression(rules.loud);
    this.piped = expression(rules.piped, { lines: true, flags: "g" });
    this.dealtWith = expression(rules.dealt_with);
  }

  /**
   * Whether a line, with NUL for the matched text, mentions an error without reporting it. In the
   * title of a thread, quotation marks show what is reported.
   */
  isMention(line, isTitle = false) {
    if (this.mentions.some((pattern) => pattern.test(line))) return true;
    if (isTitle) return false;
    return this.quotes.some((pattern) => this.isQuoted(line, pattern, this.introduces)) ||
      this.isQuoted(line, this.span, this.pasted);
  }

  /** Whether the text is quoted, and nothing around the quotation reports a failure. */
  isQuoted(line, pattern, introduction) {
    const quote = pattern.exec(line);
    if (!quote) return false;
    const start = Math.max(quote.index - this.rules.introduction, 0);
    return !introduction.test(line.slice(start, quote.index)) &&
      !this.follows.test(line.slice(quote.index + quote[0].length));
  }

  /**
   * Whether a program says that it goes on, around the exception whose message is on a line.
   * `line(index, most)` gives the first characters of a line, and nothing outside of the log.
   */
  isDealtWith(index, line) {
    const { above, below, near, traceback } = this.rules;
    for (let i = index + 1; i <= index + below; i++)
      if (this.dealtWith.test(line(i, near))) return true;
    for (let i = index; i > Math.max(index - above, 0); i--)
      if (line(i, near).startsWith(traceback)) return this.dealtWith.test(line(i - 1, near));
    return false;
  }

  /** Whether a line or its prefix has a level such as INFO, and the line reports no problem. */
  isQuiet(prefix, line) {
    const hasQuietLevel = this.hasQuietLevel(prefix) || this.quietRecord.test(line);
    return hasQuietLevel && !this.loud.test(line);
  }

  /**
   * Whether levels carry no information, since another program's output was logged at one level.
   * `prefix(offset)` gives the prefix of the line that a place of the text lies in.
   */
  isPiped(text, prefix) {
    let count = 0;
    for (const { index } of text.matchAll(this.piped)) {
      if (count++ === this.rules.alarms) return false;
      if (this.hasQuietLevel(prefix(index))) return true;
    }
    return false;
  }

  hasQuietLevel(prefix) {
    return this.quiet.test(prefix) || this.quietRecord.test(prefix);
  }
}
