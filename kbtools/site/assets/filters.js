// The filters of the index: links to a page each without JavaScript, here buttons whose state is in
// the address. Within a kind any may hold, of several kinds all must.

import { fill, make } from "./dom.js";

/** Turns the links into filters. */
export function mount(nav) {
  const list = document.getElementById("kb-list");
  const count = document.getElementById("kb-count");
  const nothing = document.getElementById("kb-nothing");
  const clear = nav.querySelector(".kb-clear");
  const rows = [...list.children];
  const buttons = [...nav.querySelectorAll("a.kb-choice")].map((link) => {
    const button = make("button", {
      type: "button", class: "kb-choice", "aria-pressed": "false",
      "data-kind": link.dataset.kind, "data-value": link.dataset.value,
    }, ...link.childNodes);
    link.replaceWith(button);
    return button;
  });
  const of = (row, kind) => (row.getAttribute(`data-${kind}`) || "").split(" ");

  const apply = () => {
    const chosen = new URLSearchParams(location.search);
    const kinds = [...new Set(chosen.keys())].filter((kind) => buttons.some((b) => b.dataset.kind === kind));
    let shown = 0;
    for (const row of rows) {
      const fits = kinds.every((kind) => chosen.getAll(kind).some((v) => of(row, kind).includes(v)));
      row.hidden = !fits;
      shown += fits;
    }
    for (const button of buttons)
      button.setAttribute("aria-pressed",
        chosen.getAll(button.dataset.kind).includes(button.dataset.value));
    count.textContent = fill(count.dataset.words, { n: shown, all: rows.length });
    nothing.hidden = shown > 0;
    clear.hidden = !kinds.length;
  };

  const go = (chosen) => {
    const query = chosen.toString();
    history.replaceState(null, "", query ? `?${query}` : location.pathname);
    apply();
  };

  nav.addEventListener("click", (event) => {
    const button = event.target.closest("button.kb-choice");
    if (!button) return;
    const { kind, value } = button.dataset;
    const chosen = new URLSearchParams(location.search);
    const others = chosen.getAll(kind).filter((one) => one !== value);
    const add = !chosen.getAll(kind).includes(value);
    chosen.delete(kind);
    for (const one of others) chosen.append(kind, one);
    if (add) chosen.append(kind, value);
    go(chosen);
  });
  clear.addEventListener("click", () => go(new URLSearchParams()));
  addEventListener("popstate", apply);
  // a narrow screen has no room for all of them at once
  if (matchMedia("(max-width: 60em)").matches)
    for (const facet of nav.querySelectorAll("details"))
      facet.open = [...facet.querySelectorAll("button")].some((b) =>
        new URLSearchParams(location.search).getAll(b.dataset.kind).includes(b.dataset.value));
  apply();
}
