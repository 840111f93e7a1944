// The matcher, loaded when it is needed, in a worker: a log that takes long stops nothing else.

import { ROOT } from "../dom.js";
import { expression } from "./pattern.js";
import { indexOf } from "./shelves.js";

/** Seconds that a text may take; then its worker is ended, and the next text gets a new worker. */
const SECONDS = 5;
/** A text of at least so many characters is a pasted line; a shorter text is a search for words. */
const LINE = 12;
/** Articles that are offered for an error line. */
const MOST = 3;

const fetched = new Map();
let worker = null;

/** Why there is no answer: `TOO_LONG` stands for a text that took too long. */
export const TOO_LONG = "TooLong";

/** How many articles there are, `diagnose`, and what is removed from a log wherever it stands. */
export async function matcher() {
  const head = await fetchOnce("paste/signatures/head.json");
  const noise = expression(head.index.noise, { flags: "g" });
  return { count: head.count, diagnose: (text) => diagnose(head, text), noise };
}

/** A file of the site, fetched once; if that failed, the next call tries it again. */
function fetchOnce(path) {
  if (!fetched.has(path)) {
    const content = fetch(new URL(path, ROOT)).then((answer) => {
      if (!answer.ok) throw new Error(`${path}: ${answer.status}`);
      return answer.json();
    });
    fetched.set(path, content);
    content.catch(() => fetched.delete(path));
  }
  return fetched.get(path);
}

/** The answer of `kbtools diagnose --json`, and the `articles` that it was chosen from. */
async function diagnose(head, text) {
  const { shelves, isCut } = await ask(head, { text });
  const index = indexOf(head, await Promise.all(
    shelves.map((number) => fetchOnce(`paste/signatures/${number}.json`))));
  const answer = { ...await ask(head, { text, index }), articles: index.articles };
  if (answer.matches.length || !isCut) return answer;
  const whole = await fetchOnce("api/v1/signatures.json");
  return { ...await ask(head, { text, index: whole }), articles: [...whole.articles, ...whole.notices.map(({ entry }) => entry)] };
}

async function ask(head, question) {
  worker = worker || start(head);
  const current = worker;
  await current.ready; // loading is not counted: it may be the network that is slow
  return current.ask(question);
}

function start(head) {
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
    ask: (question) => {
      const answer = replyTo(++last, SECONDS);
      thread.postMessage({ number: last, ...question });
      return answer;
    },
  };
  thread.postMessage({ number: 0, head });
  return current;
}

/** Articles that a line of text is about, best first; none for a few words, which are a search. */
export async function recognise(text) {
  if (text.length < LINE) return [];
  try {
    const { diagnose: answer } = await matcher();
    return (await answer(text)).matches.slice(0, MOST);
  } catch {
    return []; // the index of words answers alone
  }
}
