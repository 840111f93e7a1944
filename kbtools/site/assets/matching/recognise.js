// The matcher, loaded when it is needed, in a worker: a log that takes long stops nothing else.

import { ROOT } from "../dom.js";

/** How long one text may take; then its worker is ended, and the next text gets a new one. */
const SECONDS = 5;
/** Characters of which a text is a pasted line and no longer a search for a few words. */
const LINE = 12;
/** What of an error line is enough: three articles that may be meant. */
const MOST = 3;

let fetching = null;
let worker = null;

/** Why there is no answer: `TOO_LONG` stands for a text that took too long. */
export const TOO_LONG = "TooLong";

/** The articles of the index, and `diagnose`, which answers as `kbtools diagnose --json` does. */
export async function matcher() {
  fetching = fetching || fetched();
  fetching.catch(() => { fetching = null; });
  const index = await fetching;
  return { articles: index.articles, diagnose: (text) => diagnose(index, text) };
}

async function fetched() {
  const answer = await fetch(new URL("api/v1/signatures.json", ROOT));
  if (!answer.ok) throw new Error(`signatures: ${answer.status}`);
  return answer.json();
}

async function diagnose(index, text) {
  worker = worker || start(index);
  const own = worker;
  await own.ready; // loading is not counted: it may be the network that is slow
  return own.ask(text);
}

function start(index) {
  const started = new Worker(new URL("./worker.js", import.meta.url), { type: "module" });
  const waiting = new Map();
  const end = (error) => {
    started.terminate();
    if (worker === own) worker = null;
    for (const { reject } of waiting.values()) reject(error);
    waiting.clear();
  };
  const promised = (number, seconds) => new Promise((resolve, reject) => {
    const timer = seconds && setTimeout(() => {
      const error = new Error(`no answer within ${seconds} s`);
      error.name = TOO_LONG;
      end(error);
    }, seconds * 1000);
    waiting.set(number, {
      resolve: (found) => { clearTimeout(timer); resolve(found); },
      reject: (error) => { clearTimeout(timer); reject(error); },
    });
  });
  started.addEventListener("error", () => end(new Error("the matcher failed")));
  started.addEventListener("message", ({ data }) => {
    const one = waiting.get(data.number);
    waiting.delete(data.number);
    if (data.failed) one.reject(new Error(data.failed));
    else one.resolve(data.found);
  });
  let last = 0;
  const own = {
    ready: promised(0, 0),
    ask: (text) => {
      const answer = promised(++last, SECONDS);
      started.postMessage({ number: last, text });
      return answer;
    },
  };
  started.postMessage({ number: 0, index });
  return own;
}

/** Articles that know a line of text, best first; none for a few words, which are a search. */
export async function recognise(text) {
  if (text.length < LINE) return [];
  try {
    const found = await matcher();
    return (await found.diagnose(text)).matches.slice(0, MOST);
  } catch {
    return []; // the index of words answers alone
  }
}
