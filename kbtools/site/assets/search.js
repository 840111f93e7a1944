// Search: Pagefind's index of every language, and the signatures of the articles, which know an error
// line when they see one. Both are loaded when a search begins.

import { FIRST, LANGUAGE, LANGUAGES, ROOT, fill, inLanguage, make, words as site } from "./dom.js";
import { recognise } from "./matching/recognise.js";

const LONGEST = 12; // results in a list
const CHARACTERS = 24; // of a Chinese query, searched one by one
const WORDS = 8; // of a query that the index is asked for: each may be in a file of its own
const REPORTED = "kb-known kb-known--reported";
const TELLING = 4; // letters of a word that is looked up alone, if two words have so many
const RARE = 0.3; // of the rarity of a query's words: a page that has so much of it is about them
const HAN = /\p{Script=Han}/u;
let loading = null;
let merging = null;

function engine() {
  loading = loading || (async () => {
    const pagefind = await import(new URL("pagefind/pagefind.js", ROOT));
    await pagefind.options({ baseUrl: ROOT.pathname, excerptLength: 24 });
    if (LANGUAGE !== FIRST) await mergeOthers(pagefind); // an untranslated page is in no other index
    return pagefind;
  })();
  return loading;
}

/** Loads the indexes of the other languages; in the first one every article is, so that few need them. */
function mergeOthers(pagefind) {
  merging = merging || (async () => {
    for (const language of LANGUAGES)
      if (language !== LANGUAGE)
        await pagefind.mergeIndex(new URL("pagefind", ROOT).href, { language }).catch(() => null);
  })();
  return merging;
}

/** Loads what a search needs, so that the first one is quick. */
export function prepare() {
  engine().then((pagefind) => pagefind.init && pagefind.init()).catch(() => { loading = null; });
}

/** An address of the site without its language: the same page in any of them. */
function same(url) {
  const path = new URL(url, ROOT).pathname.slice(ROOT.pathname.length);
  const [head, ...rest] = path.split("/");
  return LANGUAGES.includes(head) && head !== FIRST ? rest.join("/") : path;
}

/**
 * The words of a query. Chinese is written without spaces, and whoever cuts it into words cuts it
 * otherwise than the index was cut: each two neighbouring characters count as a word.
 */
function words(query) {
  const result = [];
  for (const part of query.toLowerCase().split(/\s+/))
    for (const run of part.match(/\p{Script=Han}+|\P{Script=Han}+/gu) || [])
      if (HAN.test(run) && run.length > 2)
        for (let at = 0; at + 2 <= run.length; at++) result.push(run.slice(at, at + 2));
      else result.push(run);
  return result;
}

/** How well a page fits a query beyond Pagefind's order, which counts the beginning of a word, too. */
function fit(query, page) {
  const title = page.meta.title.toLowerCase();
  const text = page.content.toLowerCase();
  const isWord = (word) => {
    for (let at = text.indexOf(word); at >= 0; at = text.indexOf(word, at + 1)) {
      const around = [text[at - 1], text[at + word.length]];
      if (/[^\x00-\x7f]/.test(word) || !around.some((c) => c && /\w/.test(c))) return true;
    }
    return false;
  };
  const phrase = query.toLowerCase().trim().replace(/\s+/g, " ");
  const all = words(query);
  const share = all.filter(isWord).length / (all.length || 1);
  return (title.includes(phrase) ? 4 : 0) + (isWord(phrase) ? 2 : 0) + (share === 1 ? 1 : share / 2);
}

/** Of these words the ones that a page has, at least how they begin: where nothing has a word, Pagefind looks for ever less of it, down to a letter. */
function present(all, page) {
  const text = `${page.meta.title} ${page.content}`.toLowerCase();
  return all.filter((word) => text.includes(HAN.test(word) ? word : word.slice(0, Math.max(2, word.length * 0.6))));
}

/** A word without what stands around it, as quotation marks. */
const bare = (word) => word.toLowerCase().replace(/^[^\p{L}\p{N}]+|[^\p{L}\p{N}]+$/gu, "");

/** Whether a page is about a query at all: it has most of its words. */
function about(query, page) {
  const all = words(query).map(bare).filter(Boolean);
  return present(all, page).length * 2 >= all.length;
}

/**
 * A pasted line without the words that cost a reader most and find least: numbers, addresses and
 * paths, which no page has, if three other words remain; of many words the longest.
 */
function shortened(query) {
  const all = [...new Set(query.trim().split(/\s+/))];
  if (all.length <= WORDS) return query;
  const plain = all.filter((word) => !/[\p{N}/\\]/u.test(word));
  const longest = (plain.length > 2 ? plain : all).sort((a, b) => b.length - a.length);
  return longest.slice(0, WORDS).join(" ");
}

/**
 * What Pagefind finds for a query: the pages that have all of its words, and those that have the rarest of
 * them, each looked up alone, if no signature knows the query; of a Chinese one also those that have most
 * of its characters, each at the beginning of a word.
 */
async function pages(pagefind, query, isKnown) {
  const text = shortened(query);
  const characters = [...new Set(query.match(/\p{Script=Han}/gu) || [])].slice(0, CHARACTERS);
  const every = isKnown ? [] : [...new Set(text.trim().split(/\s+/))].slice(0, WORDS);
  const long = every.filter((word) => word.length >= TELLING);
  const rare = long.length > 1 ? long : every;
  const alone = characters.length ? characters : rare;
  const [exact, ...single] = await Promise.all([text, ...alone].map((word) => pagefind.search(word)));
  const best = new Map(exact.results.slice(0, 2 * LONGEST).map((result) => [result.id, result]));
  const rarity = new Map(alone.map((word, i) =>
    [bare(word), characters.length ? 1 : 1 / Math.sqrt(single[i].results.length || Infinity)]));
  const share = (all) => all.reduce((sum, word) => sum + (rarity.get(word) || 0), 0);
  const scores = new Map();
  single.forEach(({ results }, i) => results.forEach((result) => {
    const own = share([bare(alone[i])]);
    const before = scores.get(result.id) || { score: 0, rarest: 0 };
    const rarer = own > before.rarest ? { result, rarest: own } : before; // its excerpt shows that word
    scores.set(result.id, { ...rarer, score: before.score + own });
  }));
  const room = characters.length ? 2 * LONGEST : LONGEST - best.size; // each is a file to fetch
  [...scores.values()].sort((a, b) => b.score - a.score).slice(0, Math.max(0, room))
    .forEach(({ result }) => best.set(result.id, result));
  const candidates = await Promise.all([...best.values()].map((result) => result.data()));
  const all = characters.length ? [] : [...rarity.keys()];
  return candidates.map((page) => ({ ...page, share: share(present(all, page)) / (share(all) || 1) }))
    .filter((page) => page.share > RARE || about(query, page));
}

/** Results for a query, best first: `{path, title, excerpt, marked, recognised, standing}`; `standing` of notices only. */
export async function find(query) {
  const [pagefind, recognised] = await Promise.all([engine(), recognise(query)]);
  if (/[^\x00-\x7f]/.test(query)) await mergeOthers(pagefind);
  const isKnown = recognised.length > 0;
  const own = await pages(pagefind, query, isKnown);
  const all = own.length || isKnown ? own : await mergeOthers(pagefind).then(() => pages(pagefind, query, isKnown));
  const root = inLanguage("").pathname;
  const results = new Map();
  for (const page of all) {
    const path = same(page.url);
    const rank = fit(query, page) + 2 * page.share;
    const before = results.get(path);
    const inPageLanguage = new URL(page.url, ROOT).pathname === root + path;
    const result = { path, title: page.meta.title, excerpt: page.excerpt, marked: true, standing: page.meta.standing };
    if (!before) results.set(path, { ...result, rank });
    else results.set(path, { ...(inPageLanguage ? result : before), rank: Math.max(rank, before.rank) });
  }
  recognised.forEach((article, i) => {
    const path = `${article.id}/`;
    const standing = article.standing === "reported" ? fill(site.search.reported, { day: article.looked_up }) : undefined;
    const plain = { path, title: article.title, excerpt: article.summary, standing };
    results.set(path, { ...plain, ...results.get(path), rank: 20 - i, recognised: true });
  });
  const named = results.get(`${query.trim().toUpperCase()}/`);
  if (named) named.rank = 30;
  return [...results.values()].sort((a, b) => b.rank - a.rank).slice(0, LONGEST);
}

/** An excerpt, of whose HTML only `mark` is taken. */
function excerpt(html) {
  const parsed = new DOMParser().parseFromString(html, "text/html").body;
  return [...parsed.childNodes].map((node) =>
    node.nodeName === "MARK" ? make("mark", {}, node.textContent) : node.textContent);
}

/** Results as they are typed, below a field. */
export function mount(input, place, words, { keepInAddress = false } = {}) {
  let last = "";
  let timer = 0;
  const status = make("p", { class: "kb-dim", role: "status" });
  const list = make("ol", { class: "kb-results" });
  place.append(status, list);

  const show = async () => {
    const query = input.value.trim().slice(0, 2000);
    if (query === last) return;
    last = query;
    if (keepInAddress) history.replaceState(null, "", query ? `?q=${encodeURIComponent(query)}` : location.pathname);
    if (!query) {
      list.replaceChildren();
      status.textContent = "";
      return;
    }
    status.textContent = words.loading;
    try {
      const results = await find(query);
      if (query !== last) return;
      list.replaceChildren(...results.map((result) => item(result, words)));
      status.textContent = results.length === 1 ? words.one
        : results.length ? fill(words.results, { n: results.length }) : words.none;
    } catch {
      if (query === last) status.textContent = words.failed;
    }
  };
  input.addEventListener("focus", prepare, { once: true });
  input.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(show, 120);
  });
  const move = (event) => {
    const links = [...list.querySelectorAll("a")];
    const at = links.indexOf(document.activeElement);
    if (event.key === "ArrowDown" && links[at + 1]) links[at + 1].focus();
    else if (event.key === "ArrowUp" && at >= 0) (links[at - 1] || input).focus();
    else return;
    event.preventDefault();
  };
  input.addEventListener("keydown", move);
  list.addEventListener("keydown", move);
  if (input.value) show(); // typed while this was being loaded
  return { show, first: () => list.querySelector("a") };
}

function item(result, words) {
  return make("li", {},
    make("a", { href: inLanguage(result.path) }, /^[A-Z-]+\d+\/$/.test(result.path) ? `${result.path.slice(0, -1)} ` : "", result.title),
    result.recognised ? make("span", { class: result.standing ? REPORTED : "kb-known" }, words.recognised) : null,
    result.standing ? make("span", { class: REPORTED }, result.standing) : null,
    make("p", {}, ...(result.marked ? excerpt(result.excerpt) : [result.excerpt])));
}
