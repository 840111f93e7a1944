// The box for a traceback: the answer of `kbtools diagnose`, in the browser.

import { isAffected } from "./matching/affected.js";
import { FIRST, LANGUAGE, fill, inLanguage, make } from "./dom.js";
import { firstFailure } from "./first_failure.js";
import { speaker } from "./hints.js";
import { TOO_LONG, matcher } from "./matching/recognise.js";
import { showAnswer } from "./you.js";

/** Characters that the field shows: a browser is slow with more, the matcher is not. */
const IN_FIELD = 20000;

/** Makes the form answer. */
export function mount(form) {
  const words = JSON.parse(form.dataset.paste);
  const you = JSON.parse(form.dataset.you);
  const speak = speaker(JSON.parse(form.dataset.hints));
  const translated = JSON.parse(form.dataset.translated);
  const area = form.querySelector("textarea");
  const answers = document.getElementById("kb-answers");
  const example = form.querySelector(".kb-example");
  const show = (kind, text) => answers.replaceChildren(make("p", { class: kind }, text));

  const showPlace = (start, end) => {
    area.focus();
    area.setSelectionRange(start, end);
    area.scrollTop = area.scrollHeight * (start / area.value.length) - area.clientHeight / 2;
  };

  let pasted = null; // a text that is too long for the field, or that the field would change
  let asked = null; // the text whose answer is shown or on its way: it is not answered twice

  const answer = async () => {
    const text = pasted || area.value;
    const value = area.value;
    if (!text.trim() || text === asked) return;
    asked = text;
    show("kb-dim", words.working);
    try {
      const { count, diagnose, noise } = await matcher();
      const { first, matches, versions, findings, articles } = await diagnose(text);
      if (area.value !== value) return;
      const failure = first && firstFailure(first, text, { noise, words, speak, show: pasted ? null : showPlace });
      const matched = new Set(matches.map(({ id }) => id));
      const others = found(findings.filter(({ article }) => !matched.has(article)), words);
      if (!matches.length) {
        answers.replaceChildren(
          ...(failure ? [failure] : []), make("p", { class: "kb-none" }, fill(words.none, { n: count })), ...others);
        return;
      }
      const claims = Object.fromEntries(articles.map((article) => [article.id, article]));
      const versionTexts = Object.entries(versions).map(([name, version]) => `${name} ${version}`);
      answers.replaceChildren(
        ...(failure ? [failure] : []),
        make("p", { class: "kb-dim" }, matches.length > 1 ? fill(words.found, { n: matches.length }) : words.one),
        make("ol", { class: "kb-matches" }, ...matches.map((match) => item(match, { words, you, speak, translated, versions, claims, findings }))),
        ...others,
        ...(versionTexts.length ? [make("p", { class: "kb-dim" }, `${words.versions}: ${versionTexts.join(", ")}`)] : []));
    } catch (error) {
      asked = null;
      if (area.value === value) show("kb-none", error.name === TOO_LONG ? words["too-long"] : words.failed);
    }
  };

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    answer();
  });
  area.addEventListener("paste", (event) => {
    const text = event.clipboardData ? event.clipboardData.getData("text/plain") : "";
    const isLong = text.length > IN_FIELD;
    if (isLong || hasReturns(text)) {
      event.preventDefault();
      pasted = text;
      area.value = isLong ? `${text.slice(0, IN_FIELD / 2)}\n\n…\n\n${text.slice(-IN_FIELD / 2)}` : text;
    }
    setTimeout(answer, 0);
  });
  area.addEventListener("input", () => { pasted = asked = null; });
  if (example)
    example.addEventListener("click", () => {
      area.value = example.dataset.example;
      pasted = null;
      answer();
    });
  // before this, submitting the form would have left the page
  for (const button of form.querySelectorAll("button")) button.disabled = false;
  if (area.value) answer(); // text that was pasted meanwhile, or before a reload
}

/** Whether a carriage return stands within a line: a field would make it the end of one. */
const hasReturns = (text) => text.includes("\n") && /\r[^\r\n]/.test(text);

/** What the doctor found that no article above is about; nothing for nothing. */
function found(findings, words) {
  if (!findings.length) return [];
  return [
    make("p", { class: "kb-dim" }, `${words["doctor-others"]}:`),
    make("ul", { class: "kb-doctor" }, ...findings.map(({ article, level, summary }) => make("li", {},
      `${words[level]} `, make("a", { href: inLanguage(`${article}/`) }, article), ` ${summary}`))),
  ];
}

function item(match, { words, you, speak, translated, versions, claims, findings }) {
  const [title, summary] = translated[match.id] || [match.title, match.summary];
  const language = { lang: translated[match.id] || LANGUAGE === FIRST ? null : FIRST };
  const answer = make("p", {});
  const { affected = [], tried = [] } = claims[match.id] || {};
  const affectedness = isAffected(affected, toolchain(versions), tried);
  const uncertain = match.affected === "unknown" && affectedness.answer === false; // a log shows not all GPUs
  showAnswer(answer, uncertain ? { answer: "missing", name: "gpus" } : affectedness, wordsFor(match, words, you));
  const finding = findings.find(({ article }) => article === match.id);
  const reported = match.standing === "reported" ? "kb-match kb-match--reported" : "kb-match";
  return make("li", { class: match.confident ? "kb-match kb-match--sure" : reported },
    make("p", { class: "kb-match-head" },
      make("span", { class: "kb-sure" }, sureness(match, words)), " ",
      make("a", { href: inLanguage(`${match.id}/`), ...language }, `${match.id}: ${title}`)),
    make("p", { class: "kb-match-summary", ...language }, ...coded(summary)),
    make("p", { class: "kb-match-line" },
      make("span", {}, fill(words.line, { n: match.line })), " ",
      make("code", {}, String(match.text || match.signature).slice(0, 400))),
    finding ? make("p", { class: "kb-doctor" }, fill(words.doctor, { summary: finding.summary })) : null,
    affected.length ? answer : make("p", { class: "kb-answer" }, you.always),
    match.hints.length
      ? make("div", { class: "kb-surer" }, make("p", {}, `${words.surer}:`),
          make("ul", {}, ...match.hints.map((hint) => speak("li", {}, hint, coded))))
      : null);
}

/** The words for a reader's versions: a notice speaks of the window that is reported. */
const wordsFor = (match, words, you) => (match.standing === "reported"
  ? { ...you, affected: words.inside, "not-affected": words.outside } : you);

/** How sure a match is; of a notice, that it is reported and was not run. */
function sureness(match, words) {
  if (match.standing === "reported") return fill(words.reported, { day: match.looked_up });
  return match.confident ? words.sure : words.unsure;
}

/** The versions that a log shows, as a toolchain; of its GPUs it shows the kind, never how many. */
function toolchain({ python = null, cuda = null, driver = null, sm = null, ...packages }) {
  return { python, cuda, driver, gpus: sm ? [{ sm }] : null, packages };
}

/** A text in which what stands between backticks is code. */
function coded(text) {
  const parts = text.split("`");
  if (parts.length % 2 === 0) return [text];
  return parts.map((part, i) => (i % 2 ? make("code", {}, part) : part));
}
