// The box for a traceback: what `kbtools diagnose` answers, in the browser.

import { isAffected } from "./matching/affected.js";
import { FIRST, LANGUAGE, fill, here, make } from "./dom.js";
import { TOO_LONG, matcher } from "./matching/recognise.js";
import { tell } from "./you.js";

/** Of what the matcher says would make it surer, where that is not the page's. */
const REASONS = LANGUAGE === "en" ? null : "en";

/** Characters that the field shows: a browser takes long to set more, the matcher does not. */
const SHOWN = 20000;

/** Makes the form answer. */
export function mount(form) {
  const words = JSON.parse(form.dataset.paste);
  const you = JSON.parse(form.dataset.you);
  const own = JSON.parse(form.dataset.own);
  const area = form.querySelector("textarea");
  const place = document.getElementById("kb-answers");
  const example = form.querySelector(".kb-example");
  const say = (kind, text) => place.replaceChildren(make("p", { class: kind }, text));

  let pasted = null; // a text of which the field shows only a part

  const answer = async () => {
    const text = pasted || area.value;
    const shown = area.value;
    if (!text.trim()) return;
    say("kb-dim", words.working);
    try {
      const { articles, diagnose } = await matcher();
      const { matches, versions } = await diagnose(text);
      if (area.value !== shown) return;
      if (!matches.length) {
        say("kb-none", fill(words.none, { n: articles.length }));
        return;
      }
      const claims = Object.fromEntries(articles.map((one) => [one.id, one.affected || []]));
      const known = Object.entries(versions).map(([name, version]) => `${name} ${version}`);
      place.replaceChildren(
        make("p", { class: "kb-dim" }, matches.length > 1 ? fill(words.found, { n: matches.length }) : words.one),
        make("ol", { class: "kb-matches" }, ...matches.map((one) => match(one, { words, you, own, versions, claims }))),
        ...(known.length ? [make("p", { class: "kb-dim" }, `${words.versions}: ${known.join(", ")}`)] : []));
    } catch (error) {
      if (area.value === shown) say("kb-none", error.name === TOO_LONG ? words["too-long"] : words.failed);
    }
  };

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    answer();
  });
  area.addEventListener("paste", (event) => {
    const text = event.clipboardData ? event.clipboardData.getData("text/plain") : "";
    if (text.length > SHOWN) {
      event.preventDefault();
      pasted = text;
      area.value = `${text.slice(0, SHOWN / 2)}\n\n…\n\n${text.slice(-SHOWN / 2)}`;
    }
    setTimeout(answer, 0);
  });
  area.addEventListener("input", () => { pasted = null; });
  if (example)
    example.addEventListener("click", () => {
      area.value = example.dataset.example;
      pasted = null;
      answer();
    });
  // until now a form that was sent would have left the page
  for (const button of form.querySelectorAll("button")) button.disabled = false;
  if (area.value) answer(); // what was pasted meanwhile, or was there before a reload
}

function match(one, { words, you, own, versions, claims }) {
  const [title, summary] = own[one.id] || [one.title, one.summary];
  const theirs = { lang: own[one.id] || LANGUAGE === FIRST ? null : FIRST };
  const answer = make("p", {});
  const found = isAffected(claims[one.id], toolchain(versions));
  const unseen = one.affected === "unknown" && found.answer === false; // a log shows not all GPUs
  tell(answer, unseen ? { answer: "missing", name: "gpus" } : found, you);
  return make("li", { class: one.confident ? "kb-match kb-match--sure" : "kb-match" },
    make("p", { class: "kb-match-head" },
      make("span", { class: "kb-sure" }, one.confident ? words.sure : words.unsure), " ",
      make("a", { href: here(`${one.id}/`), ...theirs }, `${one.id}: ${title}`)),
    make("p", { class: "kb-match-summary", ...theirs }, ...coded(summary)),
    make("p", { class: "kb-match-line" },
      make("span", {}, fill(words.line, { n: one.line })), " ",
      make("code", {}, String(one.text || one.signature).slice(0, 400))),
    claims[one.id].length ? answer : make("p", { class: "kb-answer" }, you.always),
    one.hints.length
      ? make("div", { class: "kb-surer" }, make("p", {}, `${words.surer}:`),
          make("ul", { lang: REASONS }, ...one.hints.map((wish) => make("li", {}, ...coded(wish)))))
      : null);
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
