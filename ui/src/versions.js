// What the versions of Kubernetes that are asked for say alike, and what not.

import { byId, fill, grouped, h } from "./dom.js";

const WORDS = { admitted: "taken", refused: "refused", "unknown-fields": "taken by lenient clients", empty: "no object" };

/** Shows them; nothing for one version. */
export function show(minors) {
  const section = byId("versions");
  section.hidden = minors === null;
  if (minors === null) return fill(section.lastElementChild);
  const { each, fine, differences } = minors;
  const head = ["Kubernetes", "Object", "Dearest rules", "Findings"].map((text) => h("th", { scope: "col" }, text));
  fill(section.lastElementChild,
    h("table", { class: "versions" }, h("thead", {}, h("tr", {}, head)), h("tbody", {}, each.map(row))),
    h("h3", {}, differences.length > 0 ? "What differs" : "Nothing differs"),
    differences.length > 0 && h("dl", { class: "differences" }, differences.map(({ minors, what }) => [h("dt", {}, minors), h("dd", {}, what)])),
    h("p", { class: "quiet small" }, `The definition and the object: ${fine}.`));
}

function row({ minor, outcome, cost, limit, findings }) {
  return h("tr", { "data-outcome": outcome },
    h("th", { scope: "row" }, minor),
    h("td", {}, WORDS[outcome] ?? "not read"),
    h("td", {}, cost === null ? "none" : `${grouped(cost)}${cost > limit ? ", over the limit" : ""}`),
    h("td", {}, grouped(findings)));
}
