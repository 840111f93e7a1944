// The box for a traceback: what `kbtools diagnose` answers, in the browser.

import { fill, here, make } from "./dom.js";
import { matcher } from "./recognise.js";

/** Makes the form answer. */
export function mount(form) {
  const words = JSON.parse(form.dataset.paste);
  const you = JSON.parse(form.dataset.you);
  const area = form.querySelector("textarea");
  const place = document.getElementById("kb-answers");
  const example = form.querySelector(".kb-example");

  const answer = async () => {
    const text = area.value;
    if (!text.trim()) return;
    place.replaceChildren(make("p", { class: "kb-dim" }, words.working));
    try {
      const { articles, diagnose } = await matcher();
      const { matches } = await diagnose(text);
      if (area.value !== text) return;
      if (!matches.length) {
        place.replaceChildren(
          make("p", { class: "kb-none" }, fill(words.none, { n: articles })));
        return;
      }
      place.replaceChildren(
        make("p", { class: "kb-dim" }, fill(words.found, { n: matches.length })),
        make("ol", { class: "kb-matches" }, ...matches.map((one) => match(one, words, you))));
    } catch {
      place.replaceChildren(make("p", { class: "kb-none" }, words.failed));
    }
  };

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    answer();
  });
  area.addEventListener("paste", () => setTimeout(answer, 0));
  if (example)
    example.addEventListener("click", () => {
      area.value = example.dataset.example;
      answer();
    });
}

function match(one, words, you) {
  const affected = { affected: "affected", "not affected": "not-affected", unknown: "unknown" }[one.affected];
  return make("li", { class: one.sure ? "kb-match kb-match--sure" : "kb-match" },
    make("p", { class: "kb-match-head" },
      make("span", { class: "kb-sure" }, one.sure ? words.sure : words.unsure), " ",
      make("a", { href: here(`${one.id}/`) }, `${one.id}: ${one.title}`)),
    make("p", { class: "kb-match-summary" }, one.summary),
    make("p", { class: "kb-match-line" },
      one.line ? `${fill(words.line, { n: one.line })}: ` : "",
      make("code", {}, String(one.text || one.signature || "").slice(0, 400))),
    affected
      ? make("p", { class: `kb-answer kb-answer--${affected}` },
          make("strong", {}, you[affected]), one.because ? ` ${one.because}` : "")
      : null);
}
