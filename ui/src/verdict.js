// The verdict, and why.

import { byId, fill, grouped, h } from "./dom.js";

const HEADS = {
  admitted: { create: "Created: the server takes it", update: "Updated: the server takes it" },
  refused: { create: "Refused: the server does not create it", update: "Refused: the server does not update it" },
  "unknown-fields": { create: "Created by a lenient client, refused by kubectl", update: "Updated by a lenient client, refused by kubectl" },
};
const NOTHING = {
  empty: "Write an object to see what the definition says to it",
  unreadable: "The object can't be read yet",
  "broken-definition": "The definition can't be read yet",
};

/** Shows it; `jump(pane, line)` goes to a line. Without a verdict, the markers tell why. */
export function show(verdict, definitionFaults, markers, jump) {
  const head = HEADS[verdict.outcome]?.[verdict.operation] ?? NOTHING[verdict.outcome]
    ?? `Nothing defines ${verdict.kind || "this kind"}${verdict.apiVersion ? ` in ${verdict.apiVersion}` : ""}`;
  const section = byId("verdict");
  section.dataset.outcome = verdict.outcome;
  const counted = verdict.errors ? verdict.errors.length + verdict.unknown.length : 0;
  const count = counted > 1 ? ` (${counted} faults)` : "";
  // Only what is new is read out.
  const words = head + count;
  if (byId("verdict-head").textContent !== words) byId("verdict-head").textContent = words;
  const faults = definitionFaults > 0 && h("p", { class: "note" }, "The server refuses the definition as it is; this is what it would say otherwise. See ", h("a", { href: "#findings" }, "the findings"), ".");
  if (!verdict.errors) return fill(byId("verdict-body"), faults, list("errors", unread(markers, jump)));
  const more = verdict.errorsInAll - verdict.errors.length;
  fill(
    byId("verdict-body"),
    faults,
    list("errors", [
      ...verdict.unknown.map((error) => fault(error, jump)),
      ...verdict.errors.map((error) => fault(error, jump)),
      verdict.denial && h("li", {}, h("p", {}, verdict.denial.message), h("p", { class: "quiet" }, `by a policy: ${verdict.denial.reason}, ${verdict.denial.code}`)),
      more > 0 && h("li", {}, `and ${grouped(more)} more`),
    ]),
    notes("Forgiven, as the update left the values alone", verdict.ratcheted),
    notes("Warnings", verdict.warnings),
    notes("Audit annotations", verdict.annotations),
  );
}

/** What can't be read. */
function unread(markers, jump) {
  const shown = markers.filter(({ severity, pane }) => severity === "error" && pane !== "definition").slice(0, 4);
  return shown.map(({ pane, line, message }) => h("li", {}, h("p", {}, lineButton(`unread-${pane}-${line}`, pane, line, jump), ` ${message}`)));
}

function fault(error, jump) {
  const { field, message, line, rule, parts } = error;
  return h("li", {},
    h("p", {}, line && lineButton(`verdict-${field}-${line}`, "object", line, jump), " ", h("code", {}, field), " ", message.replace(new RegExp(`^${escaped(field)}: `), "")),
    rule && h("p", { class: "quiet" }, "rule ", h("code", {}, rule)),
    rule && values(parts));
}

const escaped = (text) => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");

export function lineButton(key, pane, line, jump) {
  return h("button", { type: "button", class: "line", "data-key": key, onclick: () => jump(pane, line) }, `line ${line}`);
}

/** The parts of a rule with their values. */
export function values(parts) {
  if (!parts?.length) return null;
  return h("table", { class: "values" }, h("tbody", {}, parts.map(({ text, value, truth }) =>
    h("tr", {}, h("th", { scope: "row" }, h("code", {}, text)), h("td", { "data-truth": truth === null ? undefined : String(truth) }, h("code", {}, value))))));
}

function list(name, items) {
  const shown = items.filter(Boolean);
  return shown.length > 0 && h("ul", { class: name }, shown);
}

function notes(title, texts) {
  return texts.length > 0 && h("div", { class: "notes" }, h("h3", {}, title), list("plain", texts.map((text) => h("li", {}, text))));
}
