// A log and an index → ranked articles, or none: the twin of kbtools/matching/matcher.py, which
// says why each step is as it is. A test compares their answers, log by log.

import { isAffected, versionOf } from "./affected.js";
import { Log, cleaned, expression, strip } from "./cleaning.js";
import { Quoting, shortened } from "./mentions.js";

// what the line of a hit reads as, and whether the `near` of a signature occurs: the smaller, the better
const LineKind = { ERROR: 0, OUTPUT: 1, WARNING: 2 };
const NearText = { PRESENT: 0, NOT_REQUIRED: 1, ABSENT: 2 };
const MACHINE = ["python", "cuda", "driver", "sm", "gpus"];
const SHOWN = 400; // characters of a line, from its beginning, that say what it is
const REACH = 1000; // of a repeat in a `near`: it runs on the whole text, and RE2 is not here
const canonical = (name) => name.toLowerCase().replace(/[-_.]+/g, "-");
const lazily = (make) => {
  let made;
  return () => (made === undefined ? (made = make()) : made);
};

/** The matcher of an index (`api/v1/signatures.json`): `load(index).diagnose(text)`. */
export const KBMatch = { load: (index) => new Matcher(index) };

class Matcher {
  constructor(index) {
    const { rules } = index;
    const owners = new Map();
    for (const entry of index.articles)
      for (const signature of entry.signatures) {
        if (!owners.has(signature.literal)) owners.set(signature.literal, []);
        owners.get(signature.literal).push({ entry, signature });
      }
    this.rules = rules;
    this.owners = [...owners.values()];
    this.texts = [...owners.keys()];
    this.literals = lazily(() => new Literals(this.texts));
    this.cleaning = {
      noise: expression(index.noise, { flags: "g" }),
      prefixes: expression(`^(?:${index.prefixes.join("|")})+`),
      entities: rules.entities,
      escaped: expression(rules.escaped),
      notebook: rules.notebook,
      cell: expression(rules.cell, { lines: true, flags: "g" }),
      limits: { head: rules.head, tail: rules.tail, most: rules.most_lines },
    };
    this.versions = index.versions.map(([name, patterns]) =>
      [name, patterns.map((one) => lazily(() => expression(one, { lines: true })))]);
    this.error = expression(rules.error);
    this.warning = expression(rules.warning);
    this.code = expression(rules.code);
    this.frame = expression(rules.frame);
    this.place = expression(rules.place);
    this.quoting = new Quoting(rules);
    this.compiled = new Map();
  }

  /** The articles whose failure a log shows, best first; what Python's `Diagnosis` is as JSON. */
  diagnose(raw) {
    const clean = cleaned(raw, this.cleaning);
    let log = new Log(clean);
    const versions = this.versionsOf(log.text);
    const toolchain = asToolchain(versions);
    let best = this.best(log);
    for (const joint of this.rules.joints) {
      if (best.size) break;
      const broken = new Log(clean, joint);
      best = this.best(broken);
      if (best.size) log = broken;
    }
    if (!best.size) best = this.cut(log);
    const ranked = [...best.values()];
    for (const hit of ranked) {
      hit.answer = affected(hit.entry, toolchain);
      hit.line = log.indexOf(hit.at);
    }
    ranked.sort((one, other) => compared(rank(one), rank(other)));
    const matches = ranked.map((hit, place) => this.match(hit, log, ranked, place));
    return { schema: 2, matches, versions, lines: log.numberOf(log.text.length) };
  }

  versionsOf(text) {
    const known = {};
    for (const [name, patterns] of this.versions)
      for (const pattern of patterns) {
        const found = pattern().exec(text);
        if (!found) continue;
        known[name] = found[1];
        break;
      }
    return known;
  }

  best(log) {
    const best = new Map();
    const seen = { near: new Map(), frame: new Map() };
    for (const [literal, found] of this.literals().places(log.text)) {
      const half = Math.floor(this.rules.places / 2);
      const ends = found.length <= this.rules.places
        ? found : [...found.slice(0, half), ...found.slice(-half)];
      for (const { entry, signature } of this.owners[literal])
        for (const at of ends) {
          const where = this.found(signature, at, log);
          if (!where || this.isCode(log, at, seen.frame)) continue;
          if (this.quoting.isMention(log, at, where)) continue;
          const kind = this.kind(log, at);
          const hit = { entry, signature, at, kind, near: this.near(signature, log, seen.near) };
          const known = best.get(entry.id);
          if (!known || compared(strength(hit), strength(known)) < 0) best.set(entry.id, hit);
        }
    }
    return best;
  }

  /** The article of which a summary shows the beginning of a literal, if it is one alone. */
  cut(log) {
    const found = new Map();
    for (const [number, at] of shortened(log.text, this.texts, this.rules))
      for (const { entry, signature } of this.owners[number])
        if (!signature.wraps && !signature.regex)
          found.set(entry.id, { entry, signature, at, kind: LineKind.ERROR, near: NearText.NOT_REQUIRED, isCut: true });
    return found.size === 1 ? found : new Map();
  }

  /** What of the text says so, where a signature whose literal is there speaks of its failure. */
  found(signature, at, log) {
    const literal = { start: at, end: at + signature.literal.length };
    if (!signature.regex) return literal;
    const around = log.around(at, this.rules.lines, this.rules.characters);
    const found = this.pattern(signature.regex, 0).exec(around.text);
    if (!found) return null;
    const start = around.start + found.index;
    const end = start + found[0].length;
    if (start > at || at >= end) return literal;
    return { start, end: Math.max(end, literal.end) };
  }

  near(signature, log, known) {
    if (!signature.near) return NearText.NOT_REQUIRED;
    if (!known.has(signature.near))
      known.set(signature.near, this.pattern(signature.near, REACH).test(log.text));
    return known.get(signature.near) ? NearText.PRESENT : NearText.ABSENT;
  }

  pattern(source, most) {
    const key = `${most} ${source}`;
    if (!this.compiled.has(key))
      this.compiled.set(key, expression(source, { lines: true, most, flags: "u" }));
    return this.compiled.get(key);
  }

  kind(log, at) {
    const said = log.excerpt(at);
    if (this.quoting.isDealtWith(log, log.indexOf(at))) return LineKind.WARNING;
    const shown = log.shown[log.indexOf(at)].slice(0, 200);
    if (this.error.test(said) || this.error.test(shown)) return LineKind.ERROR;
    return this.warning.test(said) ? LineKind.WARNING : LineKind.OUTPUT;
  }

  isCode(log, at, frames) {
    const index = log.indexOf(at);
    if (!frames.has(index)) {
      const above = log.line(index - 1, SHOWN);
      frames.set(index,
        (this.frame.test(above) && log.indent(index) >= log.indent(index - 1)) ||
        (this.place.test(above) && log.depth(index) > log.depth(index - 1)));
    }
    return frames.get(index) || this.code.test(log.excerpt(at));
  }

  match(hit, log, ranked, place) {
    const { entry, signature, answer } = hit;
    const doubts = [...doubtsOf(hit, ranked)];
    const telling = Boolean(signature.regex) || [...signature.literal].length >= this.rules.telling;
    const retired = Boolean(entry.retired);
    return {
      id: entry.id,
      title: entry.title,
      summary: entry.summary,
      line: log.numberOf(hit.at),
      text: log.wide(strip(log.excerpt(hit.at))),
      signature: signature.regex || signature.literal,
      affected: answer[0],
      reason: answer[1],
      confident: place === 0 && hit.kind === LineKind.ERROR && telling && !doubts.length && !retired,
      hints: [...doubts, ...wishes(entry, answer)],
      retired,
    };
  }
}

/** Every literal of an index in one pass over a text: Aho and Corasick's automaton. */
class Literals {
  constructor(literals) {
    this.lengths = literals.map((one) => one.length);
    this.units = new Uint16Array(65536);
    this.width = 1;
    for (const literal of literals)
      for (let i = 0; i < literal.length; i++) {
        const unit = literal.charCodeAt(i);
        if (!this.units[unit]) this.units[unit] = this.width++;
      }
    const most = 1 + this.lengths.reduce((sum, length) => sum + length, 0);
    this.next = new Int32Array(most * this.width);
    this.own = new Int32Array(most).fill(-1); // the literal that ends in a state
    this.shorter = new Int32Array(most); // the next state in which one ends, too
    this.states = 1;
    literals.forEach((literal, number) => this.add(literal, number));
    this.link();
  }

  add(literal, number) {
    let state = 0;
    for (let i = 0; i < literal.length; i++) {
      const edge = state * this.width + this.units[literal.charCodeAt(i)];
      if (!this.next[edge]) this.next[edge] = this.states++;
      state = this.next[edge];
    }
    this.own[state] = number;
  }

  link() {
    const suffix = new Int32Array(this.states);
    const queue = [0];
    for (let i = 0; i < queue.length; i++) {
      const state = queue[i];
      this.shorter[state] = this.own[suffix[state]] >= 0 ? suffix[state] : this.shorter[suffix[state]];
      for (let unit = 1; unit < this.width; unit++) {
        const edge = state * this.width + unit;
        const after = state ? this.next[suffix[state] * this.width + unit] : 0;
        if (this.next[edge]) {
          suffix[this.next[edge]] = after;
          queue.push(this.next[edge]);
        } else this.next[edge] = after;
      }
    }
  }

  /** Literal → where it begins, in the order of their first ends. */
  places(text) {
    const found = new Map();
    const { next, units, width, own, shorter } = this;
    for (let i = 0, state = 0; i < text.length; i++) {
      state = next[state * width + units[text.charCodeAt(i)]];
      if (own[state] < 0 && !shorter[state]) continue;
      for (let end = own[state] < 0 ? shorter[state] : state; end; end = shorter[end]) {
        const literal = own[end];
        const start = i + 1 - this.lengths[literal];
        if (found.has(literal)) found.get(literal).push(start);
        else found.set(literal, [start]);
      }
    }
    return found;
  }
}

function compared(one, other) {
  for (let i = 0; i < one.length; i++) {
    if (one[i] < other[i]) return -1;
    if (one[i] > other[i]) return 1;
  }
  return 0;
}

const strength = ({ signature, kind, near, at }) =>
  [Boolean(signature.wraps), kind, near, !signature.regex, at];

const rank = ({ entry, signature, kind, near, line, answer }) => [
  Boolean(signature.wraps), answer[0] === "not affected", kind, line, near, !signature.regex,
  -[...signature.literal].length, entry.id,
];

function asToolchain(versions) {
  const packages = Object.create(null);
  for (const [name, found] of Object.entries(versions))
    if (!MACHINE.includes(name)) packages[canonical(name)] = found;
  const gpus = versions.sm ? [{ name: "", sm: versions.sm }] : [];
  return {
    python: versions.python, cuda: versions.cuda, driver: versions.driver, gpus, packages,
  };
}

const names = (entry) =>
  [...new Set((entry.affected || []).flatMap((one) => Object.keys(one)))].sort();

function affected(entry, toolchain) {
  const claims = entry.affected || [];
  if (!claims.length) return ["affected", "it fails on every version"];
  const claimed = claims
    .map((one) => Object.entries(one).map(([name, span]) => `${name} ${span}`).join(" and "))
    .join(" or ");
  const { answer, name, range, version, why } = isAffected(claims, toolchain);
  if (answer === "missing") return ["unknown", `${claimed} is; the log shows no version of ${name}`];
  if (answer === "undecided") {
    const reason = why === "invalid"
      ? `${name} ${version} is not a version that compares`
      : `${name} ${version} is a pre-release on the boundary of ${range}`;
    return ["unknown", `${claimed} is; ${reason}`];
  }
  if (!answer && claims.some((one) => "gpus" in one))
    return ["unknown", `${claimed} is; a log does not show how many GPUs there are`];
  const known = names(entry).filter((one) => versionOf(toolchain, one) !== null);
  const shown = known.map((one) => `${one} ${versionOf(toolchain, one)}`).join(", ");
  return [answer ? "affected" : "not affected", `${claimed} is; the log shows ${shown}`];
}

function* doubtsOf(hit, ranked) {
  if (hit.isCut) yield "the line is cut: show the whole of it";
  if (hit.signature.wraps)
    yield "other failures print this text, too: look for the first error above it";
  if (hit.answer[0] === "not affected")
    yield `the versions in the log are not affected (${hit.answer[1]})`;
  const alike = ranked
    .filter((other) => other !== hit && other.line === hit.line && other.near <= hit.near)
    .map((other) => other.entry.id);
  const confusable = hit.entry.confusable || [];
  if (alike.length)
    yield `${alike.join(" and ")} prints the same line: its Symptom tells them apart`;
  else if (confusable.length && hit.near === NearText.ABSENT)
    yield `${confusable.join(" and ")} may print this, too: its Symptom tells them apart`;
}

function* wishes(entry, answer) {
  if (answer[0] === "unknown")
    yield `add the version of ${names(entry).join(" and ")} (the output of \`pip list\`, say)`;
}
