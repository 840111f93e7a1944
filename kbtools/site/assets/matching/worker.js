// The matcher, away from the page: a log that takes it long stops this worker, not the reader's tab.
// Made with `new Worker(url, { type: "module" })`. It is told `{ number, index }` once, then
// `{ number, text }` for each log, and answers `{ number, found }`, or `{ number, failed }` with the
// reason; found is true for the index.

import { KBMatch } from "./matcher.js";

let matcher = null;

function answered({ index, text }) {
  if (!index) return matcher.diagnose(text);
  matcher = KBMatch.load(index);
  return true;
}

self.addEventListener("message", ({ data }) => {
  try {
    self.postMessage({ number: data.number, found: answered(data) });
  } catch (error) {
    self.postMessage({ number: data.number, failed: String(error) });
  }
});
