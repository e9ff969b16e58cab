// Rules with their costs, and what they came to.

import { byId, fill, grouped, h } from "./dom.js";
import { lineButton, values } from "./verdict.js";

/** Shows them; `bound(wanted)` adds bounds, without it none are offered. */
export function show(section, definitions, { jump, bound }) {
  const shown = definitions.filter(({ rules }) => rules.length > 0);
  if (shown.length === 0) return fill(section, h("p", { class: "quiet" }, "No rules: x-kubernetes-validations is where they stand."));
  fill(section, shown.map((definition) => one(definition, jump, bound)));
}

function one(definition, jump, bound) {
  const { definition: name, version, total, limit, rules, rulesInAll } = definition;
  const isFailing = ({ runsFailed }) => Number(runsFailed > 0);
  const sorted = [...rules].sort((one, other) => isFailing(other) - isFailing(one) || other.cost - one.cost);
  return h("div", {},
    h("h3", {}, `${name} `, h("span", { class: "quiet" }, version)),
    bar("All rules", total, limit),
    h("ol", { class: "cards" }, sorted.map((rule) => card(definition, rule, jump, bound))),
    rulesInAll > rules.length && h("p", { class: "quiet" }, `and ${grouped(rulesInAll - rules.length)} more`));
}

function card(definition, rule, jump, bound) {
  const key = `${rule.line}-${rule.field}`;
  const failed = rule.runsFailed > 0;
  const state = rule.runsInAll === 0 ? "idle" : failed ? "fails" : "holds";
  const word = { idle: "not evaluated", fails: "fails", holds: "holds" }[state];
  return h("li", { class: "card", "data-state": state },
    h("p", { class: "rule-head" },
      jump && h("span", { class: "badge" }, word),
      jump && lineButton(`rule-${key}`, "definition", rule.line, jump), " ",
      h("span", { class: "quiet" }, rule.field || "the object itself")),
    h("pre", { class: "rule" }, h("code", {}, rule.rule.trim())),
    rule.message && h("p", { class: "quiet" }, rule.message),
    rule.isPriced ? bar("Cost", rule.cost, rule.limit) : h("p", { class: "quiet" }, "It has a fault, and can't be priced."),
    rule.times > 1 && h("p", { class: "quiet small" }, `${grouped(rule.each)} each, up to ${grouped(rule.times)} times`),
    rule.unbounded.length > 0 && h("p", { class: "quiet small" }, "Unbounded: ", rule.unbounded.join(", ")),
    bound && rule.remedies.map((bounds, at) => remedy(definition, bounds, `bound-${key}-${at}`, bound)),
    rule.runs.length > 0 && runs(rule, key, failed));
}

function remedy({ definition, version }, bounds, key, bound) {
  const words = bounds.map(({ keyword, limit, field }) => `${keyword}: ${limit} on ${field}`).join(", ");
  return h("p", {}, h("button", { type: "button", class: "fix", "data-key": key, onclick: () => bound({ name: definition, version, bounds }) }, `Set ${words}`));
}

function runs(rule, key, failed) {
  const many = rule.runsInAll > 1;
  const more = rule.runsInAll - rule.runs.length;
  return h("details", { "data-key": `runs-${key}`, open: failed && rule.runs.length <= 3 },
    h("summary", { "data-key": `summary-${key}` }, many ? `${grouped(rule.runsInAll)} evaluations, ${grouped(rule.runsFailed)} failed` : "Values of its parts"),
    rule.runs.map((run) => h("div", {},
      h("p", { class: "quiet small" }, run.field || "the object itself", `: ${run.truth === null ? "an error" : run.truth}, cost ${grouped(run.cost)}`),
      values(run.parts))),
    more > 0 && h("p", { class: "quiet small" }, `and ${grouped(more)} more`));
}

/** A cost against its limit. */
export function bar(name, cost, limit) {
  const share = cost / limit;
  const level = share > 1 ? "over" : share >= 0.5 ? "high" : "low";
  // Something that costs anything shows.
  const width = Math.min(100, Math.max(share * 100, cost > 0 ? 0.6 : 0));
  return h("div", { class: "cost", "data-level": level },
    h("span", { class: "small" }, `${name}: ${inWords(cost, limit, share)}`),
    h("div", { class: "bar", "aria-hidden": "true" }, h("div", { style: { width: `${width}%` } })));
}

function inWords(cost, limit, share) {
  // Where counting ends, nothing bounds it.
  if (cost > Number.MAX_SAFE_INTEGER) return `beyond any limit, as nothing bounds it; ${grouped(limit)} are allowed`;
  const percent = share > 10 ? `${grouped(Math.round(share))} times the limit`
    : share < 0.001 && cost > 0 ? "less than 0.1%" : `${(share * 100).toFixed(1)}%`;
  return `${grouped(cost)} of ${grouped(limit)}, ${percent}`;
}

export const section = () => byId("rules").lastElementChild;
