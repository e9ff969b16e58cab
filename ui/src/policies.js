// Policies of admission, and what their expressions came to.

import { byId, fill, grouped, h } from "./dom.js";
import { bar } from "./rules.js";
import { lineButton, values } from "./verdict.js";

const STATES = { true: "holds", changed: "holds", unchanged: "idle", "not evaluated": "idle", false: "fails", error: "fails" };

export function show({ asked, refused }, jump) {
  const section = byId("policies");
  section.hidden = asked.length + refused.length === 0;
  fill(section.lastElementChild,
    refused.map(({ name, errors }) => h("div", { class: "card", "data-state": "fails" }, h("h3", {}, name), h("ul", {}, errors.map((error) => h("li", {}, error))))),
    asked.map(({ kind, name, line, expressions }) => h("div", {},
      h("h3", {}, name, " ", h("span", { class: "quiet" }, kind), " ", line && lineButton(`policy-${kind}-${name}`, "definition", line, jump)),
      h("ol", { class: "cards" }, expressions.map((expression) => card(expression, `${kind}-${name}`, jump))))));
}

function card({ field, expression, outcome, line, cost, limit, parts }, policy, jump) {
  return h("li", { class: "card", "data-state": STATES[outcome] },
    h("p", { class: "rule-head" }, h("span", { class: "badge" }, outcome), line && lineButton(`${policy}-${field}`, "definition", line, jump), " ", h("span", { class: "quiet" }, field)),
    h("pre", { class: "rule" }, h("code", {}, expression.trim())),
    cost !== null && price(cost, limit),
    parts.length > 0 && h("details", { "data-key": `parts-${policy}-${field}`, open: outcome === "false" || outcome === "error" },
      h("summary", { class: "small" }, "Values of its parts"), values(parts)));
}

/** A server counts while expressions run, and estimates nothing: an estimate above the limit is no refusal. */
function price(cost, limit) {
  if (cost <= limit) return bar("Cost for the largest object", cost, limit);
  return h("p", { class: "quiet small" }, `For the largest objects it may cost more than the ${grouped(limit)} that are allowed.`);
}
