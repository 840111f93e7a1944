// Shows only the rows of a table that have every word of a field. The words are kept in the address.
import { fill } from "./dom.js";

export function mount(field) {
  const rows = [...document.getElementById(field.dataset.rows).tBodies[0].rows];
  const texts = rows.map((row) => row.textContent.toLowerCase());
  const count = document.getElementById(`${field.id}-count`);
  const apply = () => {
    const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    let visible = 0;
    rows.forEach((row, i) => {
      row.hidden = !words.every((word) => texts[i].includes(word));
      visible += !row.hidden;
    });
    count.textContent = fill(count.dataset.words, { n: visible, all: rows.length });
  };
  field.value = new URLSearchParams(location.search).get("q") || "";
  field.addEventListener("input", () => {
    history.replaceState(null, "", field.value ? `?q=${encodeURIComponent(field.value)}` : location.pathname);
    apply();
  });
  field.closest("p").hidden = false;
  apply();
}
