// What failed first, in the box for a traceback: its text, and its line marked among its neighbours.

import { fill, make } from "./dom.js";

/** Lines that are shown above and below the first failure. */
const AROUND = 2;
/** Characters of a line, and numbers of echoes, that are shown. */
const MOST = 400;
const ECHOES = 12;

/**
 * The part of an answer that says what failed first. `text` is what was pasted, `noise` are colours
 * and the like in it, `words` are those of the box, `speak` translates, and `show`, if the field holds all of the text, is
 * called with the places of the line.
 */
export function firstFailure(first, text, { noise, words, speak, show }) {
  const lines = text.split(lineEnd(text));
  const from = Math.max(first.line - 1 - AROUND, 0);
  const shown = lines.slice(from, first.line + AROUND).map((line, i) => {
    const isFirst = from + i === first.line - 1;
    const content = `${String(from + i + 1).padStart(String(first.line + AROUND).length)}  ${lastState(line).replace(noise, "").slice(0, MOST)}`;
    return isFirst ? make("mark", {}, content, "\n") : `${content}\n`;
  });
  const number = make(show ? "button" : "span", { class: "kb-first-line", type: show ? "button" : null },
    fill(words.line, { n: first.line }));
  if (show) number.addEventListener("click", () => show(...placesOf(text, first.line)));
  const echoes = first.echoes.slice(0, ECHOES).join(", ") + (first.echoes.length > ECHOES ? ", …" : "");
  return make("section", { class: first.confident ? "kb-first kb-match--sure" : "kb-first" },
    make("p", { class: "kb-match-head" },
      make("span", { class: "kb-sure" }, first.confident ? words.sure : words.unsure), " ",
      `${words["failed-first"]}: ${words[`kind-${first.kind.replaceAll(" ", "-")}`]}, `, number,
      first.process ? ` (${first.process})` : ""),
    make("p", { class: "kb-first-text" }, make("code", {}, first.text.slice(0, MOST))),
    make("pre", { tabindex: "0", "aria-label": words["failed-first"] }, make("code", {}, ...shown)),
    echoes ? make("p", { class: "kb-first-note" }, fill(words.echoes, { lines: echoes })) : null,
    first.why ? speak("p", { class: "kb-first-note" }, first.why) : null);
}

/** What ends a line, as for `grep -n`: a carriage return alone does not, if the text has a line feed. */
const lineEnd = (text) => (text.includes("\n") ? /\r*\n/g : /\r+/g);

/** What a terminal shows of a line in which carriage returns end the states of a progress bar. */
const lastState = (line) => line.slice(line.lastIndexOf("\r") + 1);

/** The places in a text at which a line begins and ends; lines are counted from 1. */
function placesOf(text, line) {
  let start = 0;
  for (const end of text.matchAll(lineEnd(text))) {
    if (--line === 0) return [start, end.index];
    start = end.index + end[0].length;
  }
  return [start, text.length];
}
