// The matcher, loaded when it is needed, in a worker: a log that takes long stops nothing else.

import { ROOT } from "./dom.js";

const SECONDS = 20;
/** Characters of which a text is a pasted line and no longer a search for a few words. */
const LINE = 12;
let loading = null;

/** How many articles there are, and `diagnose`, which answers as `kbtools diagnose --json` does. */
export function matcher() {
  loading = loading || start();
  loading.catch(() => { loading = null; });
  return loading;
}

async function start() {
  const answer = await fetch(new URL("api/v1/signatures.json", ROOT));
  if (!answer.ok) throw new Error(`signatures: ${answer.status}`);
  const index = await answer.json();
  const worker = new Worker(new URL("./matching-worker.js", import.meta.url), { type: "module" });
  const waiting = new Map();
  let last = 0;
  const end = (reason) => {
    worker.terminate();
    loading = null;
    for (const { reject } of waiting.values()) reject(new Error(reason));
  };
  worker.addEventListener("error", () => end("the matcher failed"));
  worker.addEventListener("message", ({ data }) => {
    const { resolve, reject, timer } = waiting.get(data.number);
    clearTimeout(timer);
    waiting.delete(data.number);
    if (data.failed) reject(new Error(data.failed));
    else resolve(data.found);
  });
  worker.postMessage({ index });
  const diagnose = (text) => new Promise((resolve, reject) => {
    const timer = setTimeout(() => end("it takes too long"), SECONDS * 1000);
    waiting.set(++last, { resolve, reject, timer });
    worker.postMessage({ number: last, text });
  });
  return { articles: index.articles.length, diagnose };
}

/** Articles that know a line of text, best first; none for a few words, which are a search. */
export async function recognise(text) {
  if (text.length < LINE) return [];
  try {
    const { diagnose } = await matcher();
    return (await diagnose(text)).matches.slice(0, 3);
  } catch {
    return []; // the index of words answers alone
  }
}
