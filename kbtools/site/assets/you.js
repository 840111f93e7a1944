// "Is this you?": versions, pasted or picked, against the claim of an article. Nothing is sent.

import { isAffected, isEmpty, parseToolchain, versionOf } from "./matching/affected.js";
import { readReport } from "./matching/doctor_report.js";
import { fill, make } from "./dom.js";

const STORED = "kb-toolchain";

/** Makes the form in its place. */
export function mount(box) {
  const { id, affected, tried = [], versions, gpus = {}, texts, words } = JSON.parse(box.dataset.you);
  const answer = make("p", { class: "kb-answer", role: "status" });
  if (!affected.length) {
    answer.textContent = words.always;
    box.append(answer);
    return;
  }
  const area = make("textarea", {
    id: "kb-you-paste", rows: "3", spellcheck: "false", autocomplete: "off",
  });
  const cause = make("p", { class: "kb-doctor", role: "status" });
  const picks = Object.entries(versions).map(([name, numbers]) => pick(name, numbers, words));
  box.append(
    make("p", { class: "kb-dim" }, words.lead),
    make("label", { for: "kb-you-paste", class: "kb-sr" }, words.paste),
    area,
    make("div", { class: "kb-picks" }, ...picks.map((pick) => pick.field)),
    answer,
    cause,
  );
  area.placeholder = words.paste;

  const picked = () => {
    const toolchain = { python: null, cuda: null, driver: null, gpus: null, packages: {} };
    for (const { name, input } of picks) {
      const value = input.value.trim();
      if (!value) continue;
      if (name === "gpus") toolchain.gpus = Array.from({ length: Number(value) || 0 }, () => ({}));
      else if (name === "sm") toolchain.gpus = [{ sm: value }];
      else if (["python", "cuda", "driver"].includes(name)) toolchain[name] = value;
      else toolchain.packages[name.toLowerCase().replace(/[-_.]+/g, "-")] = value;
    }
    return toolchain;
  };

  const pasted = () => {
    const report = readReport(area.value);
    const finding = report && report.findings.find(({ article }) => article === id);
    cause.textContent = finding ? fill(words.doctor, finding) : "";
    const toolchain = parseToolchain(area.value, texts);
    if (toolchain.gpus)
      for (const gpu of toolchain.gpus) if (gpu && !gpu.sm) gpu.sm = gpus[gpu.name] || null;
    if (isEmpty(toolchain)) {
      show(answer, "waiting", "", area.value.trim() ? words["not-recognised"] : words.waiting);
      return;
    }
    for (const { name, input } of picks) input.value = versionOf(toolchain, name) || "";
    showAnswer(answer, isAffected(affected, toolchain, tried), words);
    try { sessionStorage.setItem(STORED, area.value.slice(0, 100000)); } catch { /* storage is off: nothing is kept */ }
  };

  area.addEventListener("input", pasted);
  for (const { input } of picks)
    input.addEventListener("input", () => {
      const toolchain = picked();
      if (isEmpty(toolchain)) show(answer, "waiting", "", words.waiting);
      else showAnswer(answer, isAffected(affected, toolchain, tried), words);
    });
  try { area.value = sessionStorage.getItem(STORED) || ""; } catch { /* storage is off */ }
  pasted();
}

function pick(name, numbers, words) {
  const id = `kb-you-${name}`;
  const input = make("input", {
    id, list: `${id}-known`, autocomplete: "off", spellcheck: "false", inputmode: "decimal",
    "aria-label": fill(words["version-of"], { name }),
  });
  const list = make("datalist", { id: `${id}-known` }, ...numbers.map((v) => make("option", { value: v })));
  const field = make("span", { class: "kb-pick" }, make("label", { for: id }, name), input, list);
  return { name, input, field };
}

/** Shows an answer of `isAffected`, and its reason. */
export function showAnswer(place, affectedness, words) {
  const reasons = { true: "because-affected", false: "because-not", missing: "because-missing" };
  const key = affectedness.why ? `because-${affectedness.why}` : reasons[String(affectedness.answer)];
  const kinds = { true: "affected", false: "not-affected" };
  const kind = kinds[String(affectedness.answer)] || "unknown";
  show(place, kind, words[kind], affectedness.name ? fill(words[key], affectedness) : "");
}

function show(place, kind, word, reason) {
  place.className = `kb-answer kb-answer--${kind}`;
  place.replaceChildren(...(word ? [make("strong", {}, word), " "] : []), reason);
}
