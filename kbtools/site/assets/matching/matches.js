// Hits, ranked → the matches that a diagnosis gives: the twin of kbtools/matching/matches.py.

import { isAffected, versionOf } from "./affected.js";
import { strip } from "./cleaning.js";
import { LineKind, NearText } from "./hits.js";

/** The names in an article's `affected`. */
const names = (entry) =>
  [...new Set((entry.affected || []).flatMap((condition) => Object.keys(condition)))].sort();

/** Whether the reader's versions are affected, and why. */
export function claimOf(entry, toolchain) {
  const alternatives = entry.affected || [];
  if (!alternatives.length) return { affected: "affected", reason: "it fails on every version" };
  const conditions = alternatives
    .map((condition) =>
      Object.entries(condition)
        .map(([name, span]) => (span === "*" ? `any ${name}` : `${name} ${span}`)).join(" and "))
    .join(" or ");
  const where = (entry.standing === "reported" ? " is reported" : " is affected") + (entry.sm ? `, on sm ${entry.sm}` : "");
  const claim = (affected, reason, known = false) =>
    ({ affected, reason: `${conditions}${where}; ${reason}`, known });
  if (entry.sm && isAffected([{ sm: entry.sm }], toolchain).answer === false)
    return claim("not affected", `the log shows sm ${versionOf(toolchain, "sm")}`);
  const { answer, name, range, version, why } = isAffected(alternatives, toolchain, entry.tried);
  if (answer === "missing") return claim("unknown", `the log shows no version of ${name}`);
  if (answer === "undecided") {
    const reasons = {
      invalid: "is not a version that compares",
      untried: `is outside of what was tried, ${range}`,
    };
    const reason = reasons[why] || `is a pre-release on the boundary of ${range}`;
    return claim("unknown", `${name} ${version} ${reason}`, true);
  }
  if (!answer && names(entry).includes("gpus"))
    return claim("unknown", "a log does not show how many GPUs there are");
  const listed = names(entry)
    .map((part) => [part, versionOf(toolchain, part)])
    .filter(([, installed]) => installed !== null)
    .map(([part, installed]) => `${part} ${installed}`)
    .join(", ");
  return claim(answer ? "affected" : "not affected", `the log shows ${listed}`);
}

/** The key by which the hits of different articles are sorted, best first. */
export const rank = (hit, claim, log) => [...merit(hit, claim, log), hit.entry.id];

/** How much a log speaks for a hit's article; the smaller, the more. */
const merit = ({ entry, signature, kind, near, offset, texts }, claim, log) => [
  Boolean(signature.wraps), claim.affected === "not affected", kind, log.lineIndex(offset),
  !claim.hasCause, entry.standing === "reported", near, -texts, !signature.regex, -[...signature.literal].length,
];

/** The match of a hit, as Python's `Match` is in JSON; `ranked` are all hits, best first, and `first`
    is what failed first. */
export function matchOf(hit, claims, log, ranked, first, patterns) {
  const { entry, signature } = hit;
  const claim = claims.get(entry.id);
  const own = merit(hit, claim, log).join();
  const tied = ranked
    .filter((rival) => rival !== hit && merit(rival, claims.get(rival.entry.id), log).join() === own)
    .map((rival) => rival.entry.id);
  const against = [...doubtsOf(hit, claims, log, ranked, tied, first)];
  const isBest = hit === ranked[0];
  const doubts = against.length || !isBest ? against : [...lacks(hit, log, patterns)];
  const retired = Boolean(entry.retired);
  return {
    id: entry.id,
    title: entry.title,
    summary: entry.summary,
    line: log.lineNumber(hit.offset),
    text: log.lines.widen(strip(log.excerpt(hit.offset))),
    signature: signature.regex || signature.literal,
    affected: claim.affected,
    reason: claim.reason,
    confident: isBest && !doubts.length && !retired,
    hints: [...doubts, ...wishes(entry, claim)],
    tied,
    retired,
    standing: entry.standing || "executed",
    looked_up: entry.looked_up || "",
  };
}

/** What is missing in the evidence for a hit. */
function* lacks({ kind, signature }, log, { rules, exception }) {
  if (kind === LineKind.OUTPUT)
    yield "this line does not say that it is an error: compare the log with the Symptom";
  else if (kind === LineKind.WARNING && exception.test(log.byLines))
    yield "this line only warns, and the log shows an exception";
  if (!signature.regex && [...signature.literal].length < rules.telling)
    yield "the text is short: compare the log with the Symptom";
}

/** The line of an article's failure, in a log whose other lines read as no failure at all. */
export function recognised({ line, text, confident }) {
  if (!confident) return null;
  return { line, text, process: "", kind: "error", echoes: [], confident: true, why: "" };
}

/** What speaks against a hit. */
function* doubtsOf(hit, claims, log, ranked, tied, first) {
  const claim = claims.get(hit.entry.id);
  if (hit.entry.standing === "reported")
    yield `this is reported, and was not run here (looked up on ${hit.entry.looked_up})`;
  else if (hit.entry.looked_up)
    yield `what helps is reported, and was not run here (looked up on ${hit.entry.looked_up})`;
  if (tied.length)
    yield `a tie with ${tied.join(" and ")}: nothing in this text decides which is right`;
  if (hit.isCut) yield "the line is cut: show all of it";
  if (hit.signature.wraps && first && first.line !== log.lineNumber(hit.offset))
    yield `other failures print this text, too: line ${first.line} failed first`;
  else if (hit.signature.wraps)
    yield "other failures print this text, too: look for the first error above it";
  else if (hit.signature.shared && hit.near === NearText.NOT_REQUIRED)
    yield "other failures print this text, too: compare the log with the article's Symptom";
  if (first && hit.onlyNoticed && hit.near !== NearText.PRESENT)
    yield `${first.process ? `${first.process} failed first` : "another failure came first"}: ` +
      `line ${first.line}; this line may only follow from that`;
  if (hit.kind === LineKind.DEALT_WITH)
    yield "the log says that the program went on: look for a later error";
  if (claim.affected === "not affected")
    yield `the versions in the log are ${hit.entry.looked_up ? "outside what is reported" : "not affected"} ` +
      `(${claim.reason})`;
  const line = log.lineIndex(hit.offset);
  const rivals = ranked
    .filter((rival) => rival !== hit && !tied.includes(rival.entry.id) &&
      log.lineIndex(rival.offset) === line && rival.near <= hit.near &&
      (claims.get(rival.entry.id).hasCause || !claim.hasCause))
    .map((rival) => rival.entry.id);
  const confusable = hit.entry.confusable || [];
  const owner = (articles) => (articles.length === 1 ? "its" : "their");
  if (rivals.length)
    yield `${rivals.join(" and ")} ${rivals.length === 1 ? "prints" : "print"} the same line: ` +
      `${owner(rivals)} Symptom tells them apart`;
  else if (confusable.length && hit.near === NearText.ABSENT)
    yield `${confusable.join(" and ")} may print this, too: ${owner(confusable)} Symptom tells them apart`;
  else if (hit.near === NearText.ABSENT)
    yield "other failures print this text, too: compare the log with the article's Symptom";
}

/** What the log could show more of. */
function* wishes(entry, claim) {
  if (claim.affected === "unknown" && !claim.known)
    yield `add the version of ${names(entry).join(" and ")} (the output of \`pip list\`, say)`;
}
