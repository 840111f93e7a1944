// Is a toolchain affected? The same answers as kbtools/toolchains/affected.py gives, in the browser; a test
// compares the two. Versions are PEP 440, compared on the release with the local part stripped.

import { readReport } from "./doctor_report.js";

const VERSION =
  /^v?(?:(\d+)!)?(\d+(?:\.\d+)*)(?:[-_.]?(alpha|beta|preview|pre|a|b|c|rc)[-_.]?(\d*))?((?:-(\d+))|(?:[-_.]?(?:post|rev|r)[-_.]?(\d*)))?(?:([-_.]?dev)[-_.]?(\d*))?(?:\+([a-z0-9]+(?:[-_.][a-z0-9]+)*))?$/;
const PRE = { a: 0, alpha: 0, b: 1, beta: 1, c: 2, rc: 2, pre: 2, preview: 2 };

/** A PEP 440 version taken apart; null if the text is not one. */
export function parseVersion(text) {
  const match = VERSION.exec(text.trim().toLowerCase());
  if (!match) return null;
  return {
    epoch: Number(match[1] || 0),
    release: match[2].split(".").map(Number),
    pre: match[3] === undefined ? null : [PRE[match[3]], Number(match[4] || 0)],
    post: match[5] === undefined ? null : Number(match[6] || match[7] || 0),
    dev: match[8] === undefined ? null : Number(match[9] || 0),
    local: match[10] === undefined ? null : match[10],
  };
}

const isPrerelease = (version) => version.pre !== null || version.dev !== null;
const baseVersion = ({ epoch, release }) => ({ epoch, release, pre: null, post: null, dev: null, local: null });

/** Below, equal to or above zero, as PEP 440 orders two versions without their local parts. */
export function compareVersions(left, right) {
  if (left.epoch !== right.epoch) return left.epoch - right.epoch;
  for (let i = 0; i < Math.max(left.release.length, right.release.length); i++) {
    const difference = (left.release[i] || 0) - (right.release[i] || 0);
    if (difference) return difference;
  }
  const [leftRank, rightRank] = [rank(left), rank(right)];
  for (let i = 0; i < leftRank.length; i++)
    if (leftRank[i] !== rightRank[i]) return leftRank[i] < rightRank[i] ? -1 : 1;
  return 0;
}

function rank(version) {
  let pre = version.pre === null ? [3, 0] : version.pre;
  if (version.pre === null && version.post === null && version.dev !== null) pre = [-1, 0];
  return [
    ...pre,
    version.post === null ? -1 : version.post,
    version.dev === null ? Infinity : version.dev,
  ];
}

const equals = (left, right) => compareVersions(left, right) === 0;

const hasPrefix = (version, prefix) =>
  version.epoch === prefix.epoch && prefix.release.every((part, i) => (version.release[i] || 0) === part);

const isPostReleaseOf = (version, bound) =>
  version.post !== null && equals({ ...version, post: null, dev: null }, bound);

/** Whether a version satisfies a clause, as PEP 440 has it. */
function contains({ operator, bound, anyAfter }, version) {
  if (operator === "==") return anyAfter ? hasPrefix(version, bound) : equals(version, bound);
  if (operator === "!=") return anyAfter ? !hasPrefix(version, bound) : !equals(version, bound);
  if (operator === "<=") return compareVersions(version, bound) <= 0;
  if (operator === ">=") return compareVersions(version, bound) >= 0;
  const sameRelease = equals(baseVersion(version), baseVersion(bound));
  if (operator === "<")
    return (
      compareVersions(version, bound) < 0 &&
      !(!isPrerelease(bound) && isPrerelease(version) && sameRelease)
    );
  if (operator === ">")
    return (
      compareVersions(version, bound) > 0 && !(bound.post === null && isPostReleaseOf(version, bound))
    );
  const prefix = { ...bound, release: bound.release.slice(0, -1) };
  return compareVersions(version, bound) >= 0 && hasPrefix(version, prefix);
}

const isOfCommit = (version) => (version.local || "").startsWith("git");

function isUndated(version) {
  if (version.local === null) return false;
  const { pre } = version;
  return (pre !== null && pre[0] === 0 && pre[1] === 0) || version.dev === 0 || isOfCommit(version);
}

/** One clause of a version range. The truth table of `answer` is in the Python twin. */
class Clause {
  constructor(operator, text) {
    this.operator = operator;
    this.anyAfter = text.endsWith(".*");
    this.bound = parseVersion(text.replace(/\.\*$/, ""));
  }

  /** Whether a version satisfies the clause; null if that would be a guess. */
  answer(version) {
    const release = baseVersion(version);
    const publicVersion = { ...version, local: null };
    if (!isPrerelease(version) && !isOfCommit(version)) return contains(this, publicVersion);
    if (isPrerelease(this.bound)) {
      if (isUndated(version) && equals(release, baseVersion(this.bound))) return null;
      return contains(this, publicVersion);
    }
    if (this.boundaries.some((boundary) => equals(release, boundary))) return null;
    return contains(this, release);
  }

  /** The releases at which the answer changes: both ends for `==2.7.*` and for `~=2.7`. */
  get boundaries() {
    const { bound, operator } = this;
    if (!this.anyAfter && operator !== "~=") return [bound];
    const prefix = operator === "~=" ? bound.release.slice(0, -1) : bound.release;
    const following = [...prefix.slice(0, -1), prefix[prefix.length - 1] + 1];
    return [bound, { ...baseVersion(bound), epoch: 0, release: following }];
  }
}

/** The clauses of a range, as in `>=2.2,<3.0`. */
export function clausesOf(range) {
  return range
    .split(",")
    .map((part) => /^\s*(~=|==|!=|<=|>=|<|>)\s*(.*?)\s*$/.exec(part))
    .filter(Boolean)
    .map(([, operator, text]) => new Clause(operator, text));
}

/** Whether a version lies in a range; null if a pre-release makes that a guess. */
export function rangeHolds(range, version) {
  const answers = clausesOf(range).map((clause) => clause.answer(version));
  if (answers.includes(false)) return false;
  return answers.includes(null) ? null : true;
}

const MACHINE = ["python", "cuda", "driver", "sm", "gpus"];
const canonical = (name) => name.toLowerCase().replace(/[-_.]+/g, "-");

/** The version of a distribution or of a part of the machine; null if it is not known. */
export function versionOf(toolchain, name) {
  if (name === "gpus") return toolchain.gpus ? String(toolchain.gpus.length) : null;
  if (name === "sm") return (toolchain.gpus && toolchain.gpus[0] && toolchain.gpus[0].sm) || null;
  if (MACHINE.includes(name)) return toolchain[name] || null;
  const version = toolchain.packages[canonical(name)];
  return version === undefined ? null : version;
}

function condition(name, range, toolchain) {
  const version = versionOf(toolchain, name);
  if (range === "absent")
    return version === null
      ? { answer: true, why: "absent", name, range }
      : { answer: false, why: "present", name, range, version };
  if (version === null) return { answer: "missing", name, range };
  const parsed = parseVersion(version);
  if (parsed === null) return { answer: "undecided", why: "invalid", name, range, version };
  const answer = rangeHolds(range, parsed);
  if (answer === null) return { answer: "undecided", why: "boundary", name, range, version };
  return { answer, name, range, version };
}

function alternative(conditions, toolchain, tried) {
  const results = Object.entries(conditions).map(([name, range]) => condition(name, range, toolchain));
  const missing = results.find((result) => result.answer === "missing" && !MACHINE.includes(result.name));
  if (missing) return missing;
  for (const [name, range] of Object.entries(tried)) {
    const known = condition(name, range, toolchain);
    if (known.answer === false && !results.some((result) => result.answer === false && result.name !== name))
      return { ...known, answer: "undecided", why: "untried" };
  }
  const excluded = results.find((result) => result.answer === false);
  if (excluded) return excluded;
  // of those that hold, one with a version tells a reader more than one about an absent package
  const shown = results.find((result) => result.why !== "absent") || results[0];
  return results.find((result) => result.answer !== true) || { ...shown, answer: true };
}

/**
 * Whether any alternative of an `affected` holds: `answer` is true, false, "missing" or "undecided";
 * the rest is the condition that decides. `tried` has, for each alternative, the versions of which something is
 * known; one outside is undecided.
 */
export function isAffected(affected, toolchain, tried = []) {
  let missing = null;
  let undecided = null;
  let excluded = null;
  for (const [i, conditions] of affected.entries()) {
    const result = alternative(conditions, toolchain, tried[i] || {});
    if (result.answer === true) return result;
    if (result.answer === "missing") missing = missing || result;
    else if (result.answer === "undecided") undecided = undecided || result;
    else excluded = excluded || result;
  }
  return undecided || missing || excluded || { answer: false };
}

const NAMED = { python: "python", nvcc: "cuda", driver: "driver" };
const LINES = [
  [/^Python version:\s*(\d[\w.+]*)/, (m, t) => setOnce(t, "python", m[1])],
  [/^CUDA runtime version:\s*(\d[\d.]*)/, (m, t) => setOnce(t, "cuda", m[1])],
  [/^Nvidia driver version:\s*(\d[\d.]*)/i, (m, t) => setOnce(t, "driver", m[1])],
  [/^GPU (\d+):?\s+(.*?)(?:, compute capability (\d+\.\d+))?\s*$/, gpu],
  [/^GPU\s+none\s*$/, (m, t) => { t.gpus = []; }],
  [/^(?:\[(?:pip3?|conda)\]\s*)?([A-Za-z0-9][\w.-]*)(?:\[[\w,-]*\])?\s*(?:===?|\s)\s*v?(\d[\w.!+-]*)(?=$|[\s;,#])/, named],
];

function setOnce(table, key, value) {
  if (table[key] === undefined || table[key] === null) table[key] = value;
}

function gpu(match, toolchain) {
  toolchain.gpus = toolchain.gpus || [];
  if (!toolchain.gpus[Number(match[1])])
    toolchain.gpus.push({ name: match[2], sm: match[3] || null });
}

function named(match, toolchain) {
  const name = match[1].toLowerCase();
  if (NAMED[name]) setOnce(toolchain, NAMED[name], match[2]);
  else setOnce(toolchain.packages, canonical(name), match[2]);
}

/** The toolchain that a text shows: what the doctor, `pip list`, `kbtools env` or a package prints.

`texts` are those before the version of a package, by its name: `{torch: ["PyTorch version: "]}`. */
export function parseToolchain(text, texts = {}) {
  const announced = Object.entries(texts).flatMap(([name, before]) =>
    before.map((words) => [words.trimEnd(), name]));
  const toolchain = { python: null, cuda: null, driver: null, gpus: null, packages: Object.create(null) };
  const report = readReport(text);
  if (report && Object.keys(report.versions).length) {
    const { python = null, driver = null, sm, ...packages } = report.versions;
    for (const [name, version] of Object.entries(packages)) toolchain.packages[canonical(name)] = version;
    return { ...toolchain, python, driver, gpus: sm ? [{ sm }] : null };
  }
  const trimmed = text.trim();
  if (trimmed.startsWith("{")) {
    try {
      const json = JSON.parse(trimmed);
      for (const [name, version] of Object.entries(json.packages || {}))
        toolchain.packages[canonical(name)] = String(version);
      for (const key of ["python", "cuda", "driver"])
        if (typeof json[key] === "string") toolchain[key] = json[key];
      toolchain.gpus = Array.isArray(json.gpus) ? json.gpus : [];
      return toolchain;
    } catch {
      // not JSON after all: read it as lines
    }
  }
  for (const line of trimmed.slice(0, 500000).split(/\r?\n/)) {
    const start = line.trim().slice(0, 500);
    for (const [words, name] of announced)
      if (start.startsWith(words)) {
        const version = /^\s*(\d\S*)/.exec(start.slice(words.length));
        if (version) setOnce(toolchain.packages, name, version[1]);
      }
    for (const [pattern, record] of LINES) {
      const match = pattern.exec(start);
      if (match) {
        record(match, toolchain);
        break;
      }
    }
  }
  return toolchain;
}

/** Whether nothing was read. */
export function isEmpty(toolchain) {
  return !Object.keys(toolchain.packages).length && !toolchain.python && !toolchain.cuda &&
    !toolchain.driver && !toolchain.gpus;
}
