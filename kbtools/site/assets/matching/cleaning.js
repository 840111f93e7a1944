// A pasted log, cleaned: the twin of kbtools/matching/cleaning.py. Its patterns come with the index.

import { expression } from "./pattern.js";

const SURROGATES = /[\ud800-\udbff][\udc00-\udfff]|[\ud800-\udfff]/g;
const REPLACEMENT = "?"; // for half of a surrogate pair, as in Python
const PRIVATE = [0xe000, 0xf8ff]; // code units that stand for characters of two units
const isHigh = (unit) => unit >= 0xd800 && unit < 0xdc00;
const isLow = (unit) => unit >= 0xdc00 && unit < 0xe000;
const isSpace = (unit) =>
  (unit >= 9 && unit <= 13) || (unit >= 28 && unit <= 32) || unit === 0x85 || unit === 0xa0 ||
  unit === 0x1680 || (unit >= 0x2000 && unit <= 0x200a) || unit === 0x2028 || unit === 0x2029 ||
  unit === 0x202f || unit === 0x205f || unit === 0x3000;

/** A text without the spaces around it, as Python's `str.strip` knows them. */
export function strip(text) {
  let [start, end] = [0, text.length];
  while (start < end && isSpace(text.charCodeAt(start))) start++;
  while (end > start && isSpace(text.charCodeAt(end - 1))) end--;
  return text.slice(start, end);
}

/** What cleans logs, by the patterns and limits of an index. */
export class Cleaner {
  constructor(index) {
    this.rules = index.rules;
    this.noise = expression(index.noise, { flags: "g" });
    this.prefixes = expression(`^(?:${index.prefixes.join("|")})+`);
    this.shared = { prefix: expression(index.rules.shared), least: index.rules.shared_least };
    this.title = expression(index.rules.title);
    this.escaped = expression(index.rules.escaped);
    this.cell = expression(index.rules.cell, { lines: true, flags: "g" });
  }

  /**
   * The lines of a log as it was pasted, with and without their prefixes; of a long log those of its
   * beginning and its end. `widen` gives a text its characters of two units back.
   */
  clean(raw) {
    const { text, gapAt, gap } = bothEnds(raw.replace(/\r+\n?/g, "\n"), this.rules);
    const { narrow, widen } = narrowed(text);
    const quiet = narrow.replace(this.noise, "").replace(/\u00a0/g, " ");
    const body = quiet.replace(this.title, "");
    const { prefixed, sources } = this.split(body);
    const unprefixed = prefixed.map((line) => line.replace(this.prefixes, ""));
    const { shared, rules: { excerpt } } = this;
    const isTitled = body.length < quiet.length;
    const returns = endedByReturns(raw);
    return { prefixed, unprefixed, sources, gapAt, gap, returns, isTitled, widen, shared, excerpt };
  }

  /** The lines of a text and, where a line in it holds several, which line each comes from, from 0. */
  split(text) {
    const { entities, percent, blank, notebook, translations } = this.rules;
    if (text.includes("&"))
      for (const [entity, sign] of entities) text = text.replaceAll(entity, sign);
    if (text.includes(notebook)) text = text.replace(this.cell, "$1");
    for (const [foreign, english] of translations) text = text.replaceAll(foreign, english);
    let lines = text.replaceAll('\\"', '"').replaceAll("\\'", "'").split("\n");
    if (text.includes(blank))
      lines = lines.map((line) => (line.split(blank).length > 2 ? readable(line, percent) : line));
    if (!text.includes("\\n")) return { prefixed: lines, sources: null };
    const prefixed = [];
    const sources = [];
    lines.forEach((line, index) => {
      const pieces = line.split("\\n").length > 2 ? line.split(this.escaped) : [line];
      for (const piece of pieces) {
        prefixed.push(piece);
        sources.push(index);
      }
    });
    return { prefixed, sources };
  }
}

/** Lines of a log, from 1, that a carriage return alone ends; none for a log without a line feed. */
function endedByReturns(raw) {
  const returns = [];
  if (!raw.includes("\r") || !raw.includes("\n")) return returns;
  let line = 0;
  for (const [end] of raw.matchAll(/\r+\n?|\n/g)) {
    line++;
    if (!end.endsWith("\n")) returns.push(line);
  }
  return returns;
}

/** How many of some whole numbers, which ascend, are less than a number. */
function bisect(numbers, number) {
  let [low, high] = [0, numbers.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (numbers[middle] < number) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** A line of an address, with the characters that `%20` and others stand for. */
function readable(line, percent) {
  for (const [written, sign] of percent) line = line.replaceAll(written, sign);
  return line;
}

/** A cleaned log whose lines are joined: `text` is what is matched. */
export class Log {
  constructor(lines, joint = "\n") {
    let pieces = joint === "\n" ? lines.unprefixed : withoutShared(lines);
    if (joint === " ") pieces = pieces.map(strip);
    this.lines = lines;
    this.text = pieces.join(joint);
    this.joint = joint.length;
    this.joined = joint !== "\n";
    this.starts = new Int32Array(pieces.length);
    for (let i = 1; i < pieces.length; i++)
      this.starts[i] = this.starts[i - 1] + pieces[i - 1].length + this.joint;
  }

  /** The number of lines. */
  get size() {
    return this.starts.length;
  }

  /** The text with its ends of lines, also where `text` has none. */
  get byLines() {
    return this.joined ? this.lines.unprefixed.join("\n") : this.text;
  }

  /** The line that a place of `text` lies in, from 0: an index for the methods below. */
  lineIndex(offset) {
    return bisect(this.starts, offset + 1) - 1;
  }

  /** The line that a place of `text` lies in, from 1, in the log as it was pasted: as `grep -n`. */
  lineNumber(offset) {
    const { sources, gapAt, gap, returns } = this.lines;
    const at = this.lineIndex(offset);
    const index = sources ? sources[at] : at;
    const line = index + 1 + (index >= gapAt ? gap : 0);
    return line - bisect(returns, line);
  }

  /** A line of `text`, or its first `most` characters; empty outside of the text. */
  line(index, most = Infinity) {
    if (index < 0 || index >= this.starts.length) return "";
    return this.text.slice(this.starts[index], Math.min(this.end(index), this.starts[index] + most));
  }

  /** A line with what stands before the program's own text. */
  prefixedLine(index) {
    return this.lines.prefixed[index];
  }

  /** How much stands before the program's own text on a line, in characters. */
  indent(index) {
    return this.prefixedLine(index).length - (this.end(index) - this.starts[index]);
  }

  /** What stands before the program's own text on a line. */
  prefix(index) {
    return this.prefixedLine(index).slice(0, Math.max(this.indent(index), 0));
  }

  /** How many blanks and tabs stand between a line's prefix and the program's own text. */
  depth(index) {
    return /[ \t]*$/.exec(this.prefix(index))[0].length;
  }

  /** The line of `text` that a place lies in, or the part of a long line near that place. */
  excerpt(offset) {
    const end = Math.min(this.end(this.lineIndex(offset)), offset + this.lines.excerpt);
    return this.text.slice(this.excerptStart(offset), end);
  }

  /** Where the excerpt of a place begins in `text`. */
  excerptStart(offset) {
    return Math.max(this.starts[this.lineIndex(offset)], offset - this.lines.excerpt);
  }

  /** The part of `text` around a place, and where that part begins in `text`. */
  around(offset, lines, characters) {
    const index = this.lineIndex(offset);
    const start = Math.max(this.starts[Math.max(index - lines, 0)], offset - characters);
    const last = this.end(Math.min(index + lines, this.starts.length - 1));
    return { text: this.text.slice(start, Math.min(last, offset + characters)), start };
  }

  end(index) {
    return index + 1 < this.starts.length ? this.starts[index + 1] - this.joint : this.text.length;
  }
}

/**
 * A text with one unit for each character, as Python counts, and what gives the characters back.
 *
 * Half of a pair is not text. A character of two units gets a unit that the text does not use; where
 * more of them are in a text than private units exist, a character is not printed as it was.
 */
function narrowed(text) {
  if (!/[\ud800-\udfff]/.test(text)) return { narrow: text, widen: (line) => line };
  const units = new Map();
  const characters = new Map();
  let next = PRIVATE[0];
  const unused = () => {
    while (next <= PRIVATE[1] && text.includes(String.fromCharCode(next))) next++;
    return next <= PRIVATE[1] ? String.fromCharCode(next++) : "\ufffd";
  };
  const narrow = text.replace(SURROGATES, (character) => {
    if (character.length === 1) return REPLACEMENT;
    if (!units.has(character)) {
      const unit = unused();
      units.set(character, unit);
      if (unit !== "\ufffd") characters.set(unit, character);
    }
    return units.get(character);
  });
  const widen = (line) => line.replace(/[\ue000-\uf8ff]/g, (unit) => characters.get(unit) || unit);
  return { narrow, widen };
}

/** The lines without a prefix that several of them share. */
function withoutShared({ unprefixed, shared: { prefix, least } }) {
  const prefixes = unprefixed.map((piece) => prefix.exec(piece));
  const count = new Map();
  for (const match of prefixes) if (match) count.set(match[1], (count.get(match[1]) || 0) + 1);
  return unprefixed.map((piece, i) =>
    prefixes[i] && count.get(prefixes[i][1]) >= least ? piece.slice(prefixes[i][0].length) : piece);
}

/** The part of a log that is read, and which lines were left out. */
function bothEnds(text, { head, tail, most_lines: most }) {
  const total = lineEnds(text);
  let [first, last] = [text, ""];
  if (isLonger(text, head + tail)) {
    first = text.slice(0, forward(text, head));
    last = text.slice(backward(text, tail));
  } else if (total <= most) return { text, gapAt: 0, gap: 0 };
  const third = Math.floor(most / 3);
  const start = first.split("\n", third);
  const lines = (last || first).split("\n");
  const end = lines.length > 1 ? lines.slice(Math.max(1, lines.length - (most - third))) : [last];
  const gap = total + 1 - start.length - end.length;
  return { text: start.concat(end).join("\n"), gapAt: start.length, gap };
}

function lineEnds(text) {
  let count = 0;
  for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", at + 1)) count++;
  return count;
}

const isLonger = (text, characters) =>
  text.length > characters && forward(text, characters) < text.length;

/** Where so many characters from the beginning end, in units. */
function forward(text, characters) {
  let at = 0;
  for (let count = 0; count < characters && at < text.length; count++)
    at += isHigh(text.charCodeAt(at)) && isLow(text.charCodeAt(at + 1)) ? 2 : 1;
  return at;
}

/** Where so many characters before the end begin, in units. */
function backward(text, characters) {
  let at = text.length;
  for (let count = 0; count < characters && at > 0; count++)
    at -= isLow(text.charCodeAt(at - 1)) && isHigh(text.charCodeAt(at - 2)) ? 2 : 1;
  return at;
}
