// Literals that pytest's summary truncated at the width of the terminal: the twin of
// kbtools/matching/truncated.py. Its patterns come with the index.

import { expression } from "./pattern.js";

const DOTS = "...\n";

/** The number of a literal, and the place in a text where a line ends with its beginning. */
export function* truncated(text, literals, rules) {
  for (const { message, start } of cutMessages(text, rules))
    for (const [number, literal] of literals.entries()) {
      const place = message.lastIndexOf(literal.slice(0, rules.summary_least));
      const rest = message.length - place;
      if (place >= 0 && rest < literal.length && literal.startsWith(message.slice(place)))
        yield [number, start + place];
    }
}

/** The messages that pytest's summary cut, and where each begins in a text. */
export function* cutMessages(text, rules) {
  const pattern = expression(rules.summary);
  const pieces = (text.endsWith("\n") ? text : `${text}\n`).split(DOTS).slice(0, -1);
  let offset = 0;
  const lines = pieces.map((piece) => {
    const start = offset + piece.lastIndexOf("\n") + 1;
    offset += piece.length + DOTS.length;
    return [start, offset - 1];
  });
  for (const [start, end] of lines.slice(-rules.summary_most)) {
    const line = text.slice(start, end);
    const summary = end - start < rules.summary_characters ? pattern.exec(line) : null;
    if (!summary) continue;
    const message = summary[1];
    yield { message, start: start + line.length - DOTS.length + 1 - message.length };
  }
}
