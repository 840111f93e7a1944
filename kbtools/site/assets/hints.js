// What the matcher says in English, in the language of the page.

import { FIRST, LANGUAGE, fill, make } from "./dom.js";

/** A function that makes an element of a text: translated if a form fits, else as it is, marked. */
export function speaker(words) {
  const forms = Object.entries(words).map(([form, text]) => [pattern(form), text]);
  return (tag, attributes, text, parts = (words) => [words]) => {
    for (const [form, translation] of forms) {
      const match = form.exec(text);
      if (match) return make(tag, attributes, ...parts(fill(translation, match.groups || {})));
    }
    return make(tag, { ...attributes, lang: LANGUAGE === FIRST ? null : FIRST }, ...parts(text));
  };
}

/** A form, as in `line {n} failed first`, as a regular expression. */
function pattern(form) {
  const parts = form.split(/\{(\w+)\}/).map((part, i) =>
    i % 2 ? `(?<${part}>.+?)` : part.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  return new RegExp(`^${parts.join("")}$`);
}
