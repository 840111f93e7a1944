// What every page does. A page has the same content without it.

import { make, words } from "./dom.js";

const root = document.documentElement;

// Light, dark, or the system's setting.
const theme = document.querySelector(".kb-theme");
if (theme) {
  theme.hidden = false;
  theme.addEventListener("click", () => {
    const dark = root.dataset.theme
      ? root.dataset.theme === "dark"
      : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
    try { localStorage.setItem("kb-theme", root.dataset.theme); } catch { /* storage is off: the choice holds for this page */ }
  });
}

// If the configuration has no address of the site, links to be copied begin at the address shown.
for (const pre of document.querySelectorAll("pre[data-root]")) {
  const code = pre.querySelector("code");
  const base = new URL(pre.dataset.root, location).href;
  code.textContent = code.textContent.replace(/(^|\()\/(?=[\w-]+\/)/g, `$1${base}`);
}

// Copy buttons: those of the page, and one for every block of code.
for (const block of document.querySelectorAll(".kb-article .highlight")) {
  const pre = block.querySelector("pre");
  const bar = block.previousElementSibling;
  const id = bar && bar.classList.contains("kb-bar") ? bar.id : "";
  const label = id ? `${words.copy}: ${id}` : words.copy;
  const button = make("button", {
    class: "kb-copy", type: "button", "aria-label": label, "data-copied": words.copied,
  }, words.copy);
  button.source = pre;
  block.append(button);
}
for (const pre of document.querySelectorAll(".kb-article .highlight pre > code, .kb-article table"))
  if (pre.scrollWidth > pre.clientWidth) pre.tabIndex = 0;

async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = make("textarea", { "aria-hidden": "true", style: "position:fixed;opacity:0" });
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
}
for (const button of document.querySelectorAll(".kb-copy")) {
  button.hidden = false;
  button.addEventListener("click", async () => {
    const source = button.source || document.getElementById(button.dataset.copy);
    const added = [...source.querySelectorAll("ins")].map((line) => line.textContent);
    await copy(added.join("\n") || source.textContent.replace(/\n$/, ""));
    const before = button.textContent;
    if (before === button.dataset.copied) return;
    button.textContent = button.dataset.copied;
    button.setAttribute("data-done", "");
    setTimeout(() => {
      button.textContent = before;
      button.removeAttribute("data-done");
    }, 1600);
  });
}

const load = (name, use) => import(`./${name}.js`).then(use);
for (const box of document.querySelectorAll("[data-you]:not(form)")) load("you", (m) => m.mount(box));
for (const nav of document.querySelectorAll("[data-filters]")) load("filters", (m) => m.mount(nav));
for (const field of document.querySelectorAll("[data-rows]")) load("rows", (m) => m.mount(field));
for (const form of document.querySelectorAll("[data-paste]")) load("paste", (m) => m.mount(form));

// Search: a field on the home page and on its own page, and a dialog everywhere.
for (const form of document.querySelectorAll("[data-search-form]")) {
  const input = form.querySelector("input");
  const isSearchPage = "searchPage" in form.dataset;
  const place = document.getElementById("kb-results") || make("div", { id: "kb-results" });
  if (!place.isConnected) form.append(place);
  load("search", (m) => {
    const search = m.mount(input, place, words.search, { keepInAddress: isSearchPage });
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      await search.show();
      const first = search.first();
      if (first) first.focus();
    });
    if (isSearchPage) {
      input.value = new URLSearchParams(location.search).get("q") || "";
      search.show();
    }
  });
}

let dialog = null;
function open(event) {
  const field = document.querySelector("[data-search-form] input");
  if (field) {
    event.preventDefault();
    field.focus();
    return;
  }
  if (typeof HTMLDialogElement !== "function") return;
  event.preventDefault();
  if (!dialog) {
    const input = make("input", {
      type: "search", autocomplete: "off", spellcheck: "false",
      placeholder: words.hint, "aria-label": words.search.title,
    });
    const place = make("div", { class: "kb-found" });
    const close = make("button", { type: "button", class: "kb-close" }, words.search.close);
    dialog = make("dialog", { class: "kb-dialog md-typeset", "aria-label": words.search.title },
      make("form", { method: "dialog", role: "search" }, input, close), place);
    document.body.append(dialog);
    close.addEventListener("click", () => dialog.close());
    input.addEventListener("keydown", (key) => { // otherwise the first Escape only empties the field
      if (key.key !== "Escape") return;
      key.preventDefault();
      input.blur(); // a hidden field keeps the focus until the next frame, and would take the next "/"
      dialog.close();
    });
    dialog.addEventListener("click", (click) => { if (click.target === dialog) dialog.close(); });
    load("search", (m) => {
      m.prepare();
      const search = m.mount(input, place, words.search);
      dialog.querySelector("form").addEventListener("submit", async (submit) => {
        submit.preventDefault();
        await search.show();
        const first = search.first();
        if (first) location.href = first.href;
      });
    });
  }
  dialog.showModal();
  dialog.querySelector("input").select();
}
for (const link of document.querySelectorAll("[data-search-open]")) link.addEventListener("click", open);
addEventListener("keydown", (event) => {
  const typing = event.target.closest && event.target.closest("input, textarea, select, [contenteditable]");
  if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey && !event.altKey) open(event);
});
