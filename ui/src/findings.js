// What lints find, with fixes to click.

import { byId, fill, h } from "./dom.js";
import { lineButton } from "./verdict.js";

export function show(findings, { jump, fix }) {
  const section = byId("findings").lastElementChild;
  if (findings.length === 0) return fill(section, h("p", { class: "quiet" }, "Nothing is found."));
  const told = findings.filter(({ severity }) => severity !== "advice");
  const advice = findings.filter(({ severity }) => severity === "advice");
  fill(section,
    told.length > 0 && h("ul", { class: "cards" }, told.map((finding) => card(finding, jump, fix))),
    advice.length > 0 && h("details", { "data-key": "advice" },
      h("summary", { "data-key": "advice-summary" }, `${advice.length} ${advice.length === 1 ? "piece" : "pieces"} of advice`),
      h("ul", { class: "cards" }, advice.map((finding) => card(finding, jump, fix)))));
}

function card({ number, id, severity, field, line, message, reason, remedy, isFixed }, jump, fix) {
  const key = `finding-${id}-${line}-${field}`;
  return h("li", { class: "card", "data-severity": severity },
    h("p", { class: "rule-head" }, h("span", { class: "badge" }, severity), line && lineButton(key, "definition", line, jump), " ", h("span", { class: "quiet" }, id)),
    h("p", {}, message),
    h("p", { class: "quiet small" }, reason),
    isFixed
      ? h("p", {}, h("button", { type: "button", class: "fix", "data-key": `fix-${key}`, onclick: () => fix(number) }, `Fix: ${remedy}`))
      : h("p", { class: "small" }, `Remedy: ${remedy}`));
}
