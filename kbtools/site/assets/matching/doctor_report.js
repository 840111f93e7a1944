// What the doctor printed, in a pasted text: the twin of kbtools/matching/doctor_report.py, which says
// why each step is as it is.

const MOST_REPORTS = 8;
const LONGEST_REPORT = 1000; // lines
const LONGEST_LINE = 2000;
const LONGEST_TEXT = 400;

const ID = "[A-Z][A-Z-]{0,20}[0-9]{1,9}";
const LEVEL = "(fault|risk|故障|风险)";
const ANY = "[^\\n]*";
const WORD = "[^ \\t\\n]{1,40}";
const whole = (pattern) => new RegExp(`^(?:${pattern})$`);
const HINT = new RegExp(`"program":[ \\t\\n]*"kbtools |kbtools ${WORD} (?:doctor: |· )`);
const JSON_BEGIN = /^\{[ \t\n]*"schema":[ \t\n]*1,[ \t\n]*"program":[ \t\n]*"kbtools /;
const PASTED = new RegExp(`^(?:<details>[ \\t]*<summary>)?kbtools ${WORD} doctor: `);
const PRINTED = new RegExp(`^kbtools ${WORD} · `);
const VERSION = whole(`([A-Za-z0-9][\\w.-]{0,80}) ([0-9][\\w.!+-]{0,80})(?: ${ANY})?`);
const GPU = whole(`GPU [0-9]{1,3}:? ${ANY}, compute capability ([0-9]{1,2}\\.[0-9])`);
const FINDING = whole(
  `(?:- )?(?:\\*\\*)?${LEVEL}(?:\\*\\*)? (${ANY}) (?:\\[(${ID})\\]\\(${ANY}\\)|(${ID}))`);
const DETAIL = whole(`(?:- )?(?:where|seen|expected|位置|现状|应为): ${ANY}`);
const LISTED = whole(
  `(?:\\x1b\\[[0-9]+m)?[✗!] ${LEVEL}(?:\\x1b\\[0m)?(?: \\(${ANY}?\\))?: (${ANY})`);
const ARTICLE = whole(`(?:article|文章): (${ID})(?: ${ANY})?`);
const COUNTED = whole(`[0-9]{1,4} (?:faults?, |处故障)${ANY}`);
const ANY_ID = whole(ID);

const stripped = (line) => line.replace(/^[ \t]+|[ \t]+$/g, "");
const full = (form, line) => (line.length <= LONGEST_LINE ? form.exec(line) : null);

/** The report in a text that is one, or that holds one; null for none. */
export const readReport = (text) => ofJson(text) || withoutReport(text)[1];

/** A text in which the lines of reports are empty, and what they say; null for no report. */
export function withoutReport(raw) {
  if (!HINT.test(raw)) return [raw, null];
  const parts = raw.split(/(\r+\n?|\n)/);
  const lines = parts.filter((_, i) => i % 2 === 0);
  const reports = [];
  for (let at = 0, begun = 0; at < lines.length && begun < MOST_REPORTS;) {
    const isBegin = begins(lines, at);
    if (isBegin) begun++;
    const [end, report] = isBegin ? reportAt(lines, at) : [at, null];
    if (report) {
      reports.push(report);
      for (let number = at; number < end; number++) parts[2 * number] = "";
    }
    at = Math.max(end, at + 1);
  }
  if (!reports.length) return [raw, null];
  const versions = Object.assign({}, ...reports.map((report) => report.versions).reverse());
  const findings = new Map(reports.flatMap((report) => report.findings)
    .map((finding) => [JSON.stringify(finding), finding]));
  return [parts.join(""), { versions, findings: [...findings.values()] }];
}

/** Whether a line begins a report, by its form. */
function begins(lines, at) {
  const line = stripped(lines[at]);
  if (line.startsWith("{")) return JSON_BEGIN.test(lines.slice(at, at + 3).map(stripped).join("\n"));
  return PASTED.test(line) || PRINTED.test(line);
}

/** The number of the line behind a report, and what it says; null if it has no end. */
function reportAt(lines, at) {
  const line = lines[at];
  const window = lines.slice(at, at + LONGEST_REPORT);
  const texts = window.map(stripped);
  if (texts[0].startsWith("{")) {
    const margin = line.slice(0, line.indexOf("{"));
    const length = texts[0].endsWith("}") ? 1 : window.indexOf(`${margin}}`) + 1;
    return [at + length, ofJson(window.slice(0, length).join("\n"))];
  }
  if (PASTED.test(texts[0])) {
    const length = texts.indexOf("</details>") + 1 || knownLines(texts);
    return [at + length, ofLines(texts.slice(1, length))];
  }
  const last = texts.findIndex((text) => full(COUNTED, text));
  if (last < 0) return [at, null];
  return [at + last + 1, { versions: {}, findings: [...listed(texts.slice(0, last))] }];
}

/** How many lines are those of a report, as one copies them off a page. */
function knownLines(lines) {
  const other = lines.findIndex((line, number) => number && line && !line.startsWith("```") &&
    ![VERSION, GPU, FINDING, DETAIL].some((form) => full(form, line)));
  return other < 0 ? lines.length : other;
}

/** The report that `kbtools doctor --json` printed; null for any other text. */
function ofJson(text) {
  let record;
  try { record = JSON.parse(text); } catch { return null; }
  if (!isTable(record) || typeof record.program !== "string" || !record.program.startsWith("kbtools "))
    return null;
  const { python, gpus, driver } = record;
  const named = {
    ...(isTable(record.versions) ? record.versions : {}), driver,
    ...(isTable(python) ? { python: python.version } : {}),
    ...(Array.isArray(gpus) && isTable(gpus[0]) ? { sm: gpus[0].sm } : {}),
  };
  const versions = Object.fromEntries(
    Object.entries(named).filter(([, version]) => typeof version === "string" && version));
  return { versions, findings: [...decoded(Array.isArray(record.findings) ? record.findings : [])] };
}

const isTable = (value) => value !== null && typeof value === "object" && !Array.isArray(value);

function* decoded(findings) {
  for (const finding of findings.filter(isTable)) {
    const texts = [finding.article, finding.level, finding.summary];
    if (texts.every((text) => typeof text === "string") && ANY_ID.test(texts[0]))
      yield findingOf(...texts);
  }
}

/** The report of the lines that `kbtools doctor --paste` printed. */
function ofLines(lines) {
  const versions = {};
  const findings = [];
  for (const line of lines) {
    let match = full(FINDING, line);
    if (match) findings.push(findingOf(match[3] || match[4], match[1], match[2]));
    else if ((match = full(GPU, line))) versions.sm = versions.sm || match[1];
    else if (!findings.length && (match = full(VERSION, line)))
      versions[match[1]] = versions[match[1]] || match[2];
  }
  return { versions, findings };
}

/** The findings of the lines that `kbtools doctor` prints for people. */
function* listed(lines) {
  let finding = null;
  for (const line of lines) {
    finding = full(LISTED, line) || finding;
    const match = finding && full(ARTICLE, line);
    if (!match) continue;
    yield findingOf(match[1], finding[1], finding[2]);
    finding = null;
  }
}

function findingOf(article, level, summary) {
  const word = level === "fault" || level === "故障" ? "fault" : "risk";
  return { article, level: word, summary: [...summary].slice(0, LONGEST_TEXT).join("") };
}
