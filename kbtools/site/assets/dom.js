// Making elements. Text is set as text and never as HTML.

/** An element with attributes and children; a child that is a string becomes text. */
export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined)
      element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== null));
  return element;
}

/** A text of the site's words with each `{name}` replaced by its value. */
export function fill(text, values) {
  return text.replace(/\{(\w+)\}/g, (placeholder, name) => (name in values ? values[name] : placeholder));
}

/** The root of the site, as an URL: two folders above this file. */
export const ROOT = new URL("../../", import.meta.url);

/** The language of this page, and those of the site. */
export const LANGUAGE = document.documentElement.lang;
export const LANGUAGES = [...document.querySelectorAll("link[rel=alternate][hreflang]")].map(
  (link) => link.hreflang,
);
/** Pages in the first language are at the root. */
export const FIRST = LANGUAGES[0] || LANGUAGE;

/** The URL of a path below the root of this page's language. */
export function inLanguage(path) {
  return new URL((LANGUAGE === FIRST ? "" : `${LANGUAGE}/`) + path, ROOT);
}

/** The site's own words that the scripts of every page show. */
export const words = JSON.parse(document.getElementById("kb-words")?.textContent || "{}");
