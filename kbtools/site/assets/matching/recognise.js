// The matcher, loaded when it is needed, in a worker: a log that takes long stops nothing else.

import { ROOT } from "../dom.js";

/** Seconds that a text may take; then its worker is ended, and the next text gets a new worker. */
const SECONDS = 5;
/** A text of at least so many characters is a pasted line; a shorter text is a search for words. */
const LINE = 12;
/** Articles that are offered for an error line. */
const MOST = 3;

let fetching = null;
let worker = null;

/** Why there is no answer: `TOO_LONG` stands for a text that took too long. */
export const TOO_LONG = "TooLong";

/** The articles of the index, and `diagnose`, which answers as `kbtools diagnose --json` does. */
export async function matcher() {
  fetching = fetching || fetchIndex();
  fetching.catch(() => { fetching = null; });
  const index = await fetching;
  return { articles: index.articles, diagnose: (text) => diagnose(index, text) };
}

async function fetchIndex() {
  const answer = await fetch(new URL("api/v1/signatures.json", ROOT));
  if (!answer.ok) throw new Error(`signatures: ${answer.status}`);
  return answer.json();
}

async function diagnose(index, text) {
  worker = worker || start(index);
  const current = worker;
  await current.ready; // loading is not counted: it may be the network that is slow
  return current.ask(text);
}

function start(index) {
  const thread = new Worker(new URL("./worker.js", import.meta.url), { type: "module" });
  const waiting = new Map();
  const end = (error) => {
    thread.terminate();
    if (worker === current) worker = null;
    for (const { reject } of waiting.values()) reject(error);
    waiting.clear();
  };
  const replyTo = (number, seconds) => new Promise((resolve, reject) => {
    const timer = seconds && setTimeout(() => {
      const error = new Error(`no answer within ${seconds} s`);
      error.name = TOO_LONG;
      end(error);
    }, seconds * 1000);
    waiting.set(number, {
      resolve: (answer) => { clearTimeout(timer); resolve(answer); },
      reject: (error) => { clearTimeout(timer); reject(error); },
    });
  });
  thread.addEventListener("error", () => end(new Error("the matcher failed")));
  thread.addEventListener("message", ({ data }) => {
    const question = waiting.get(data.number);
    waiting.delete(data.number);
    if (data.failure) question.reject(new Error(data.failure));
    else question.resolve(data.answer);
  });
  let last = 0;
  const current = {
    ready: replyTo(0, 0),
    ask: (text) => {
      const answer = replyTo(++last, SECONDS);
      thread.postMessage({ number: last, text });
      return answer;
    },
  };
  thread.postMessage({ number: 0, index });
  return current;
}

/** Articles that a line of text is about, best first; none for a few words, which are a search. */
export async function recognise(text) {
  if (text.length < LINE) return [];
  try {
    const { diagnose: ask } = await matcher();
    return (await ask(text)).matches.slice(0, MOST);
  } catch {
    return []; // the index of words answers alone
  }
}
