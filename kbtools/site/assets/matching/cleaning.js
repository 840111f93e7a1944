// A pasted log, cleaned: the twin of kbtools/matching/cleaning.py. Its patterns come with the index.

const HALVES = /[\ud800-\udbff][\udc00-\udfff]|[\ud800-\udfff]/g;
const ALONE = "?";
const NEAR = 400; // characters on either side of a place that are its excerpt
const PRIVATE = [0xe000, 0xf8ff];
const isHigh = (unit) => unit >= 0xd800 && unit < 0xdc00;
const isLow = (unit) => unit >= 0xdc00 && unit < 0xe000;

/**
 * A pattern of the index with the meaning that Python and RE2 give it, as a RegExp.
 *
 * JavaScript's own `\s`, `.`, `^` and `$` know more spaces and line ends than theirs. `lines`: `^`
 * and `$` are those of a line. `most`: how often `*` and `+` repeat, where a text is long.
 */
export function expression(source, { lines = false, most = 0, flags = "" } = {}) {
  let made = "";
  let inClass = false;
  for (let i = 0; i < source.length; i++) {
    const sign = source[i];
    if (sign === "\\") {
      const named = source[++i];
      if (named === "s") made += inClass ? "\\t-\\r " : "[\\t-\\r ]";
      else if (named === "S") made += inClass ? "\\0-\\x08\\x0e-\\x1f!-\\uffff" : "[^\\t-\\r ]";
      else made += sign + named;
    } else if (inClass || sign === "[") {
      inClass = sign !== "]";
      made += sign;
    } else if (sign === ".") made += "[^\\n]";
    else if (sign === "^") made += lines ? "(?<![^\\n])" : sign;
    else if (sign === "$") made += lines ? "(?![^\\n])" : "(?![^\\n]|\\n[^])";
    else if (most && (sign === "*" || sign === "+")) made += `{${sign === "*" ? 0 : 1},${most}}`;
    else made += sign;
  }
  return new RegExp(made, flags);
}

const isSpace = (unit) =>
  (unit >= 9 && unit <= 13) || (unit >= 28 && unit <= 32) || unit === 0x85 || unit === 0xa0 ||
  unit === 0x1680 || (unit >= 0x2000 && unit <= 0x200a) || unit === 0x2028 || unit === 0x2029 ||
  unit === 0x202f || unit === 0x205f || unit === 0x3000;

/** Without the spaces around it, as Python's `str.strip` knows them. */
export function strip(text) {
  let [start, end] = [0, text.length];
  while (start < end && isSpace(text.charCodeAt(start))) start++;
  while (end > start && isSpace(text.charCodeAt(end - 1))) end--;
  return text.slice(start, end);
}

/** What is looked at of a raw log, cleaned, as `Log` takes it. */
export function cleaned(raw, rules) {
  const { kept, gapAt, gap } = cut(raw.replace(/\r+\n?/g, "\n"), rules.limits);
  const [narrow, wide] = narrowed(kept);
  const text = narrow.replace(rules.noise, "").replace(/\u00a0/g, " ");
  const { shown, numbers } = split(text, rules);
  const lines = shown.map((line) => line.replace(rules.prefixes, ""));
  return { shown, lines, numbers, gapAt, gap, wide };
}

/** The lines of a text and, where one in it holds several, which each comes from, from 0. */
function split(text, rules) {
  if (text.includes("&"))
    for (const [entity, sign] of rules.entities) text = text.replaceAll(entity, sign);
  if (text.includes(rules.notebook)) text = text.replace(rules.cell, "$1");
  const lines = text.replaceAll('\\"', '"').replaceAll("\\'", "'").split("\n");
  if (!text.includes("\\n")) return { shown: lines, numbers: null };
  const shown = [];
  const numbers = [];
  lines.forEach((line, number) => {
    const pieces = line.split("\\n").length > 2 ? line.split(rules.escaped) : [line];
    for (const piece of pieces) {
      shown.push(piece);
      numbers.push(number);
    }
  });
  return { shown, numbers };
}

/** A cleaned log whose lines are joined: `text` is what is matched. */
export class Log {
  constructor({ shown, lines, numbers, gapAt, gap, wide }, joint = "\n") {
    const kept = joint === " " ? lines.map(strip) : lines;
    this.shown = shown;
    this.text = kept.join(joint);
    this.numbers = numbers;
    this.gapAt = gapAt;
    this.gap = gap;
    this.wide = wide;
    this.joint = joint.length;
    this.starts = new Int32Array(kept.length);
    for (let i = 1; i < kept.length; i++)
      this.starts[i] = this.starts[i - 1] + kept[i - 1].length + this.joint;
  }

  /** Which line a place of `text` lies in, from 0. */
  indexOf(offset) {
    let [low, high] = [0, this.starts.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (offset < this.starts[middle]) high = middle;
      else low = middle + 1;
    }
    return low - 1;
  }

  /** The line, from 1, in the log as it was pasted. */
  numberOf(offset) {
    const at = this.indexOf(offset);
    const index = this.numbers ? this.numbers[at] : at;
    return index + 1 + (index >= this.gapAt ? this.gap : 0);
  }

  line(index, most = Infinity) {
    if (index < 0 || index >= this.starts.length) return "";
    return this.text.slice(this.starts[index], Math.min(this.end(index), this.starts[index] + most));
  }

  indent(index) {
    return this.shown[index].length - (this.end(index) - this.starts[index]);
  }

  /** What stands before the program's own text on a line. */
  before(index) {
    return this.shown[index].slice(0, Math.max(this.indent(index), 0));
  }

  depth(index) {
    return /[ \t]*$/.exec(this.before(index))[0].length;
  }

  excerpt(offset, characters = NEAR) {
    const end = Math.min(this.end(this.indexOf(offset)), offset + characters);
    return this.text.slice(this.excerptStart(offset, characters), end);
  }

  excerptStart(offset, characters = NEAR) {
    return Math.max(this.starts[this.indexOf(offset)], offset - characters);
  }

  /** The lines around a place, cut to a number of characters, and where they begin. */
  around(offset, lines, characters) {
    const index = this.indexOf(offset);
    const start = Math.max(this.starts[Math.max(index - lines, 0)], offset - characters);
    const last = this.end(Math.min(index + lines, this.starts.length - 1));
    return { text: this.text.slice(start, Math.min(last, offset + characters)), start };
  }

  end(index) {
    return index + 1 < this.starts.length ? this.starts[index + 1] - this.joint : this.text.length;
  }
}

/**
 * One unit for each character, as Python counts, and what gives the characters back.
 *
 * Half a pair is no text. A character of two units gets one that the text does not use; where there
 * are more of them than private ones, it is not shown as it was.
 */
function narrowed(text) {
  if (!/[\ud800-\udfff]/.test(text)) return [text, (shown) => shown];
  const given = new Map();
  const back = new Map();
  let next = PRIVATE[0];
  const free = () => {
    while (next <= PRIVATE[1] && text.includes(String.fromCharCode(next))) next++;
    return next <= PRIVATE[1] ? String.fromCharCode(next++) : "\ufffd";
  };
  const narrow = text.replace(HALVES, (found) => {
    if (found.length === 1) return ALONE;
    if (!given.has(found)) {
      const unit = free();
      given.set(found, unit);
      if (unit !== "\ufffd") back.set(unit, found);
    }
    return given.get(found);
  });
  return [narrow, (shown) => shown.replace(/[\ue000-\uf8ff]/g, (unit) => back.get(unit) || unit)];
}

function cut(text, { head, tail, most }) {
  const total = count(text);
  let [first, last] = [text, ""];
  if (isLonger(text, head + tail)) {
    first = text.slice(0, forward(text, head));
    last = text.slice(backward(text, tail));
  } else if (total <= most) return { kept: text, gapAt: 0, gap: 0 };
  const third = Math.floor(most / 3);
  const start = first.split("\n", third);
  const lines = (last || first).split("\n");
  const end = lines.length > 1 ? lines.slice(Math.max(1, lines.length - (most - third))) : [last];
  const gap = total + 1 - start.length - end.length;
  return { kept: start.concat(end).join("\n"), gapAt: start.length, gap };
}

function count(text) {
  let lines = 0;
  for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", at + 1)) lines++;
  return lines;
}

const isLonger = (text, characters) =>
  text.length > characters && forward(text, characters) < text.length;

function forward(text, characters) {
  let at = 0;
  for (let seen = 0; seen < characters && at < text.length; seen++)
    at += isHigh(text.charCodeAt(at)) && isLow(text.charCodeAt(at + 1)) ? 2 : 1;
  return at;
}

function backward(text, characters) {
  let at = text.length;
  for (let seen = 0; seen < characters && at > 0; seen++)
    at -= isLow(text.charCodeAt(at - 1)) && isHigh(text.charCodeAt(at - 2)) ? 2 : 1;
  return at;
}
