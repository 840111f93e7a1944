// The matcher, away from the page: a log that takes it long stops this worker, not the reader's tab.
// Made with `new Worker(url, { type: "module" })`. It is told `{ index }` once, then `{ number,
// text }` for each log, and answers `{ number, found }`, or `{ number, failed }` with the reason.

import { KBMatch } from "./matching.js";

let matcher = null;

self.addEventListener("message", ({ data }) => {
  if (data.index) {
    matcher = KBMatch.load(data.index);
    return;
  }
  try {
    self.postMessage({ number: data.number, found: matcher.diagnose(data.text) });
  } catch (error) {
    self.postMessage({ number: data.number, failed: String(error) });
  }
});
