// Is a toolchain affected? The same answers as kbtools/toolchains/model.py gives, in the browser; a test
// compares the two. Versions are PEP 440, compared on the release with the local part stripped.

const VERSION =
  /^v?(?:(\d+)!)?(\d+(?:\.\d+)*)(?:[-_.]?(alpha|beta|preview|pre|a|b|c|rc)[-_.]?(\d*))?((?:-(\d+))|(?:[-_.]?(?:post|rev|r)[-_.]?(\d*)))?(?:([-_.]?dev)[-_.]?(\d*))?(?:\+([a-z0-9]+(?:[-_.][a-z0-9]+)*))?$/;
const PRE = { a: 0, alpha: 0, b: 1, beta: 1, c: 2, rc: 2, pre: 2, preview: 2 };

/** A PEP 440 version taken apart; null where it is none. */
export function version(text) {
  const found = VERSION.exec(text.trim().toLowerCase());
  if (!found) return null;
  return {
    epoch: Number(found[1] || 0),
    release: found[2].split(".").map(Number),
    pre: found[3] === undefined ? null : [PRE[found[3]], Number(found[4] || 0)],
    post: found[5] === undefined ? null : Number(found[6] || found[7] || 0),
    dev: found[8] === undefined ? null : Number(found[9] || 0),
    local: found[10] === undefined ? null : found[10],
  };
}

const isPrerelease = (v) => v.pre !== null || v.dev !== null;
const base = (v) => ({ epoch: v.epoch, release: v.release, pre: null, post: null, dev: null, local: null });

/** Below, equal or above zero, as PEP 440 orders two versions without their local parts. */
export function compare(a, b) {
  if (a.epoch !== b.epoch) return a.epoch - b.epoch;
  for (let i = 0; i < Math.max(a.release.length, b.release.length); i++) {
    const difference = (a.release[i] || 0) - (b.release[i] || 0);
    if (difference) return difference;
  }
  const [one, other] = [rank(a), rank(b)];
  for (let i = 0; i < one.length; i++) if (one[i] !== other[i]) return one[i] < other[i] ? -1 : 1;
  return 0;
}

function rank(v) {
  let pre = v.pre === null ? [3, 0] : v.pre;
  if (v.pre === null && v.post === null && v.dev !== null) pre = [-1, 0];
  return [...pre, v.post === null ? -1 : v.post, v.dev === null ? Infinity : v.dev];
}

/** The clauses of a range, as in `>=2.2,<3.0`. */
export function clauses(range) {
  return range
    .split(",")
    .map((part) => /^\s*(~=|==|!=|<=|>=|<|>)\s*(.*?)\s*$/.exec(part))
    .filter(Boolean)
    .map(([, operator, text]) => ({
      operator,
      text,
      bound: version(text.replace(/\.\*$/, "")),
      any: text.endsWith(".*"),
    }));
}

function startsWith(v, bound) {
  if (v.epoch !== bound.epoch) return false;
  return bound.release.every((part, i) => (v.release[i] || 0) === part);
}

const isPostOf = (v, bound) =>
  v.post !== null && compare({ ...v, post: null, dev: null }, bound) === 0;

function contains({ operator, bound, any }, v) {
  if (operator === "==") return any ? startsWith(v, bound) : compare(v, bound) === 0;
  if (operator === "!=") return any ? !startsWith(v, bound) : compare(v, bound) !== 0;
  if (operator === "<=") return compare(v, bound) <= 0;
  if (operator === ">=") return compare(v, bound) >= 0;
  const sameRelease = compare(base(v), base(bound)) === 0;
  if (operator === "<")
    return compare(v, bound) < 0 && !(!isPrerelease(bound) && isPrerelease(v) && sameRelease);
  if (operator === ">")
    return compare(v, bound) > 0 && !(bound.post === null && isPostOf(v, bound));
  const stem = { ...bound, release: bound.release.slice(0, -1) };
  return compare(v, bound) >= 0 && startsWith(v, stem);
}

const ofCommit = (v) => (v.local || "").startsWith("git");

function undated(v) {
  if (v.local === null) return false;
  return (v.pre !== null && v.pre[0] === 0 && v.pre[1] === 0) || v.dev === 0 || ofCommit(v);
}

function onBoundary(clause, release) {
  const { bound } = clause;
  if (clause.any || clause.operator === "~=") {
    const stem = clause.operator === "~=" ? bound.release.slice(0, -1) : bound.release;
    const after = [...stem.slice(0, -1), stem[stem.length - 1] + 1];
    const next = { ...base(bound), epoch: 0, release: after };
    return compare(release, bound) === 0 || compare(release, next) === 0;
  }
  return compare(release, bound) === 0;
}

/** Whether a version lies in a range; null where a pre-release makes that a guess. */
export function within(range, v) {
  const release = base(v);
  const plain = { ...v, local: null };
  let answer = true;
  for (const clause of clauses(range)) {
    let holds;
    if (!isPrerelease(v) && !ofCommit(v)) holds = contains(clause, plain);
    else if (isPrerelease(clause.bound)) {
      const boundary = compare(release, base(clause.bound)) === 0;
      holds = boundary && undated(v) ? null : contains(clause, plain);
    } else holds = onBoundary(clause, release) ? null : contains(clause, release);
    if (holds === false) return false;
    if (holds === null) answer = null;
  }
  return answer;
}

const MACHINE = ["python", "cuda", "driver", "sm", "gpus"];
const canonical = (name) => name.toLowerCase().replace(/[-_.]+/g, "-");

/** The version of a distribution or of a part of the machine; null where it is not known. */
export function versionOf(toolchain, name) {
  if (name === "gpus") return toolchain.gpus ? String(toolchain.gpus.length) : null;
  if (name === "sm") return (toolchain.gpus && toolchain.gpus[0] && toolchain.gpus[0].sm) || null;
  if (MACHINE.includes(name)) return toolchain[name] || null;
  const found = toolchain.packages[canonical(name)];
  return found === undefined ? null : found;
}

function condition(name, range, toolchain) {
  const found = versionOf(toolchain, name);
  if (range === "absent")
    return found === null
      ? { answer: true, why: "absent", name, range }
      : { answer: false, why: "present", name, range, version: found };
  if (found === null) return { answer: "missing", name, range };
  const parsed = version(found);
  const shown = { name, range, version: found };
  if (parsed === null) return { answer: "undecided", why: "invalid", ...shown };
  const holds = within(range, parsed);
  if (holds === null) return { answer: "undecided", why: "boundary", ...shown };
  return { answer: holds, ...shown };
}

function alternative(conditions, toolchain) {
  const answers = Object.entries(conditions).map(([n, range]) => condition(n, range, toolchain));
  const missing = answers.find((one) => one.answer === "missing" && !MACHINE.includes(one.name));
  if (missing) return missing;
  const not = answers.find((one) => one.answer === false);
  if (not) return not;
  const telling = answers.find((one) => one.why !== "absent") || answers[0]; // a version tells more
  return answers.find((one) => one.answer !== true) || { ...telling, answer: true };
}

/**
 * Whether any alternative of an `affected` holds: `answer` is true, false, "missing" or "undecided";
 * the rest says which condition that rests on.
 */
export function isAffected(affected, toolchain) {
  let missing = null;
  let undecided = null;
  let not = null;
  for (const conditions of affected) {
    const found = alternative(conditions, toolchain);
    if (found.answer === true) return found;
    if (found.answer === "missing") missing = missing || found;
    else if (found.answer === "undecided") undecided = undecided || found;
    else not = not || found;
  }
  return undecided || missing || not || { answer: false };
}

const NAMED = { python: "python", nvcc: "cuda", driver: "driver" };
const LINES = [
  [/^PyTorch version:\s*(\d\S*)/, (m, t) => take(t.packages, "torch", m[1])],
  [/^Python version:\s*(\d[\w.+]*)/, (m, t) => take(t, "python", m[1])],
  [/^CUDA runtime version:\s*(\d[\d.]*)/, (m, t) => take(t, "cuda", m[1])],
  [/^Nvidia driver version:\s*(\d[\d.]*)/i, (m, t) => take(t, "driver", m[1])],
  [/^GPU (\d+):?\s+(.*?)(?:, compute capability (\d+\.\d+))?\s*$/, gpu],
  [/^GPU\s+none\s*$/, (m, t) => { t.gpus = []; }],
  [/^(?:\[(?:pip3?|conda)\]\s*)?([A-Za-z0-9][\w.-]*)(?:\[[\w,-]*\])?\s*(?:===?|\s)\s*v?(\d[\w.!+-]*)(?=$|[\s;,#])/, named],
];

function take(table, key, value) {
  if (table[key] === undefined || table[key] === null) table[key] = value;
}

function gpu(match, toolchain) {
  toolchain.gpus = toolchain.gpus || [];
  if (!toolchain.gpus[Number(match[1])])
    toolchain.gpus.push({ name: match[2], sm: match[3] || null });
}

function named(match, toolchain) {
  const name = match[1].toLowerCase();
  if (NAMED[name]) take(toolchain, NAMED[name], match[2]);
  else take(toolchain.packages, canonical(name), match[2]);
}

/** What a text says of a toolchain: `pip list` or `freeze`, `kbtools env` or `collect_env`. */
export function parse(text) {
  const toolchain = { python: null, cuda: null, driver: null, gpus: null, packages: Object.create(null) };
  const whole = text.trim();
  if (whole.startsWith("{")) {
    try {
      const read = JSON.parse(whole);
      for (const [name, found] of Object.entries(read.packages || {}))
        toolchain.packages[canonical(name)] = String(found);
      for (const key of ["python", "cuda", "driver"])
        if (typeof read[key] === "string") toolchain[key] = read[key];
      toolchain.gpus = Array.isArray(read.gpus) ? read.gpus : [];
      return toolchain;
    } catch {
      // not JSON after all: read it as lines
    }
  }
  for (const line of whole.slice(0, 500000).split(/\r?\n/)) {
    const shown = line.trim().slice(0, 500);
    for (const [pattern, act] of LINES) {
      const match = pattern.exec(shown);
      if (match) {
        act(match, toolchain);
        break;
      }
    }
  }
  return toolchain;
}

/** Whether anything was read. */
export function isEmpty(toolchain) {
  return !Object.keys(toolchain.packages).length && !toolchain.python && !toolchain.cuda &&
    !toolchain.driver && !toolchain.gpus;
}
