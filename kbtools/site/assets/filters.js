// The filters of the index. Without JavaScript each is a link to a page of its own; with it, a button
// whose state is in the address. A row fits if, of every kind with a choice, it has one of the choices.

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
  const valuesOf = (row, kind) => (row.getAttribute(`data-${kind}`) || "").split(" ");

  const apply = () => {
    const chosen = new URLSearchParams(location.search);
    const kinds = [...new Set(chosen.keys())].filter((kind) => buttons.some((b) => b.dataset.kind === kind));
    let visible = 0;
    for (const row of rows) {
      const fits = kinds.every((kind) => chosen.getAll(kind).some((v) => valuesOf(row, kind).includes(v)));
      row.hidden = !fits;
      visible += fits;
    }
    for (const button of buttons)
      button.setAttribute("aria-pressed",
        chosen.getAll(button.dataset.kind).includes(button.dataset.value));
    count.textContent = fill(count.dataset.words, { n: visible, all: rows.length });
    nothing.hidden = visible > 0;
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
    const remaining = chosen.getAll(kind).filter((choice) => choice !== value);
    const add = !chosen.getAll(kind).includes(value);
    chosen.delete(kind);
    for (const choice of remaining) chosen.append(kind, choice);
    if (add) chosen.append(kind, value);
    go(chosen);
  });
  clear.addEventListener("click", () => go(new URLSearchParams()));
  addEventListener("popstate", apply);
  // a narrow screen has no room for all filters at once
  if (matchMedia("(max-width: 60em)").matches)
    for (const facet of nav.querySelectorAll("details"))
      facet.open = [...facet.querySelectorAll("button")].some((b) =>
        new URLSearchParams(location.search).getAll(b.dataset.kind).includes(b.dataset.value));
  apply();
}
