// Which shelves of signatures a text needs: the twin of kbtools/site/data/shelves.py, which writes them.

import { Cleaner, Log } from "./cleaning.js";
import { cutMessages } from "./truncated.js";

const BASE = 0x01000193;
const MIX = 0x9e3779b1;
const DROPPED = 8;

/** The shelves of a `head.json`. */
export class Shelves {
  constructor(head) {
    this.head = head;
    this.cleaner = new Cleaner(head.index);
    this.places = new Map(); // number → shelf
    head.numbers.reduce((sum, distance, place) => {
      this.places.set(sum + distance, Math.floor(place / head.shelf));
      return sum + distance;
    }, 0);
  }

  /**
   * The shelves that have each literal in a text, however its lines are joined; and whether a line
   * is cut, so that it may have the beginning of a literal of any shelf.
   */
  needed(raw) {
    const lines = this.cleaner.clean(raw);
    const { rules } = this.head.index;
    const texts = ["\n", ...rules.joints].map((joint) => new Log(lines, joint).text);
    const shelves = new Set();
    for (const text of texts)
      for (const number of this.numbers(text))
        if (this.places.has(number)) shelves.add(this.places.get(number));
    return {
      shelves: [...shelves].sort((a, b) => a - b),
      isCut: !cutMessages(texts[0], rules).next().done,
    };
  }

  /** The number of every few characters of a text. */
  * numbers(text) {
    const { gram } = this.head;
    let leaving = 1;
    for (let i = 0; i < gram; i++) leaving = Math.imul(leaving, BASE);
    for (let at = 0, value = 0; at < text.length; at++) {
      value = (Math.imul(value, BASE) + text.charCodeAt(at)) | 0;
      if (at >= gram) value = (value - Math.imul(leaving, text.charCodeAt(at - gram))) | 0;
      if (at >= gram - 1) yield Math.imul(value ^ (value >>> 15), MIX) >>> DROPPED;
    }
  }
}

/** The articles of some shelves as an index: those of the head, too, and each once. */
export function indexOf(head, shelves) {
  const articles = new Map([head.index.articles, ...shelves].flat().map((entry) => [entry.id, entry]));
  return { ...head.index, articles: [...articles.values()].sort((a, b) => (a.id < b.id ? -1 : 1)) };
}
