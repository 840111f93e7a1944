// A log and an index → ranked articles, or none: the twin of kbtools/matching/matcher.py, which
// says why each step is as it is. A test compares their answers, log by log.

import { Cleaner, Log } from "./cleaning.js";
import { withoutReport } from "./doctor_report.js";
import { failures } from "./first.js";
import { LineReader } from "./first_lines.js";
import { Examination, LineKind, NearText, Patterns, strength } from "./hits.js";
import { Literals } from "./literals.js";
import { claimOf, matchOf, rank, recognised } from "./matches.js";
import { truncated } from "./truncated.js";
import { VersionReader, asToolchain } from "./versions.js";

const SCHEMA = 2; // of an answer; docs/diagnose.md says what changed in each version

/** The matcher of an index (`api/v1/signatures.json`): `load(index).diagnose(text)`. */
export const KBMatch = { load: (index) => new Matcher(index) };

/** Everything that a log may be about: the articles, then the notices with signatures. */
export const entriesOf = (index) =>
  [...index.articles, ...(index.notices || []).map(({ entry }) => entry).filter((entry) => entry.signatures.length)];

/** What failed first; the line of the best article, where nothing else is known but a title. */
const firstOf = ({ first, isWorded }, matches) =>
  (!first || isWorded) && matches.length ? recognised(matches[0]) || first : first;

class Matcher {
  constructor(index) {
    const owners = new Map();
    for (const entry of entriesOf(index))
      for (const signature of entry.signatures) {
        if (!owners.has(signature.literal)) owners.set(signature.literal, []);
        owners.get(signature.literal).push({ entry, signature });
      }
    this.rules = index.rules;
    this.owners = [...owners.values()];
    this.literals = [...owners.keys()];
    this.automaton = new Literals(this.literals);
    this.cleaner = new Cleaner(index);
    this.versions = new VersionReader(index.versions);
    this.names = new Set([...index.versions.map(([name]) => name), "sm"]);
    this.patterns = new Patterns(index.rules);
    this.lines = new LineReader(index);
  }

  /** The articles whose failure a log shows, best first; what Python's `Diagnosis` is as JSON. */
  diagnose(raw) {
    const [text, doctor] = withoutReport(raw);
    const lines = this.cleaner.clean(text);
    let log = new Log(lines);
    const failed = failures(log, this.lines);
    const ofMachine = Object.entries(doctor ? doctor.versions : {}).filter(([name]) => this.names.has(name));
    const versions = { ...this.versions.read(log.text), ...Object.fromEntries(ofMachine) };
    let best = this.best(log, failed);
    for (const joint of this.rules.joints) {
      if (best.size) break;
      const joined = new Log(lines, joint);
      best = this.best(joined, failed);
      if (best.size) log = joined;
    }
    if (!best.size) best = this.truncated(log);
    const toolchain = asToolchain(versions, this.rules.machine);
    const findings = doctor ? doctor.findings : [];
    const causes = new Set(findings.map(({ article }) => article));
    const ranked = [...best.values()].map((hit) => {
      const claim = { ...claimOf(hit.entry, toolchain), hasCause: causes.has(hit.entry.id) };
      return { hit, claim, key: rank(hit, claim, log) };
    }).sort((left, right) => compared(left.key, right.key));
    const hits = ranked.map(({ hit }) => hit);
    const claims = new Map(ranked.map(({ hit, claim }) => [hit.entry.id, claim]));
    const matches = hits.map((hit) => matchOf(hit, claims, log, hits, failed.first, this.patterns));
    return {
      schema: SCHEMA,
      first: firstOf(failed, matches),
      matches,
      versions,
      lines: log.lineNumber(log.text.length - (log.text.endsWith("\n") ? 1 : 0)),
      findings,
    };
  }

  /** For each article that a log is about, the hit that is the best evidence for it. */
  best(log, { noticed }) {
    const best = new Map();
    const texts = new Map();
    const lines = new Map();
    for (const hit of this.hits(log)) {
      const { id } = hit.entry;
      texts.set(id, (texts.get(id) || new Set()).add(hit.signature.literal));
      lines.set(id, (lines.get(id) || new Set()).add(log.lineNumber(hit.offset)));
      const rival = best.get(id);
      if (!rival || compared(strength(hit), strength(rival)) < 0) best.set(id, hit);
    }
    for (const [id, hit] of best) {
      const onlyNoticed = [...lines.get(id)].every((line) => noticed.has(line));
      best.set(id, { ...hit, texts: texts.get(id).size, onlyNoticed });
    }
    return best;
  }

  * hits(log) {
    const examination = new Examination(log, this.patterns);
    const most = this.rules.places;
    const half = Math.floor(most / 2);
    for (const [literal, starts] of this.automaton.occurrences(log.text)) {
      const offsets = starts.length <= most
        ? starts : [...starts.slice(0, half), ...starts.slice(-half)];
      for (const { entry, signature } of this.owners[literal])
        for (const offset of offsets) {
          const hit = examination.hit(entry, signature, offset);
          if (hit) yield hit;
        }
    }
  }

  /** The only article of which a truncated line has the beginning of a literal. */
  truncated(log) {
    const hits = new Map();
    for (const [number, offset] of truncated(log.text, this.literals, this.rules))
      for (const { entry, signature } of this.owners[number])
        if (!signature.wraps && !signature.regex)
          hits.set(entry.id, {
            entry, signature, offset, kind: LineKind.ERROR, near: NearText.NOT_REQUIRED, isCut: true,
            texts: 1,
          });
    return hits.size === 1 ? hits : new Map();
  }
}

/** The order of two keys, part by part: negative, 0 or positive. */
function compared(left, right) {
  for (let i = 0; i < left.length; i++) {
    if (left[i] < right[i]) return -1;
    if (left[i] > right[i]) return 1;
  }
  return 0;
}
