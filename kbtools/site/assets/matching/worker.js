// The matcher, away from the page: a log that takes it long stops this worker, not the reader's tab.
// Made with `new Worker(url, { type: "module" })`. It is sent `{ number, head }` once. Then it is sent
// `{ number, text }` for each log and replies which shelves that needs, and `{ number, text, index }`
// with the articles of those shelves and replies with the diagnosis. A reply is `{ number, answer }`,
// or `{ number, failure }` with the reason; the answer to a head is true.

import { KBMatch } from "./matcher.js";
import { Shelves } from "./shelves.js";

let shelves = null;

function answerTo({ head, text, index }) {
  if (index) return KBMatch.load(index).diagnose(text);
  if (!head) return shelves.needed(text);
  shelves = new Shelves(head);
  return true;
}

self.addEventListener("message", ({ data }) => {
  try {
    self.postMessage({ number: data.number, answer: answerTo(data) });
  } catch (error) {
    self.postMessage({ number: data.number, failure: String(error) });
  }
});
