// The matcher, away from the page: a log that takes it long stops this worker, not the reader's tab.
// Made with `new Worker(url, { type: "module" })`. It is sent `{ number, index }` once, then
// `{ number, text }` for each log. It replies `{ number, answer }`, or `{ number, failure }` with the
// reason; the answer to an index is true.

import { KBMatch } from "./matcher.js";

let matcher = null;

function answerTo({ index, text }) {
  if (!index) return matcher.diagnose(text);
  matcher = KBMatch.load(index);
  return true;
}

self.addEventListener("message", ({ data }) => {
  try {
    self.postMessage({ number: data.number, answer: answerTo(data) });
  } catch (error) {
    self.postMessage({ number: data.number, failure: String(error) });
  }
});
