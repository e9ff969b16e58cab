// What became of the object, as a diff.

import { byId, fill, h } from "./dom.js";

const WORDS = { added: "added", removed: "removed", changed: "became" };

export function show(object) {
  const section = byId("object-after").lastElementChild;
  if (!object) return fill(section, h("p", { class: "quiet" }, "There is no verdict yet."));
  const unchanged = object.changes.length === 0;
  fill(section,
    unchanged
      ? h("p", { class: "quiet" }, "The object as it was written: nothing is defaulted, nothing pruned.")
      : h("ul", { class: "changes" }, object.changes.map(({ change, field, value }) =>
        h("li", { "data-change": change }, h("code", {}, field), ` ${WORDS[change]} `, h("code", {}, value)))),
    object.isMutated && h("p", { class: "quiet" }, "Mutating policies have changed it."),
    h("pre", { class: "diff", tabindex: "0", "aria-label": "The object with its defaults and without unknown fields" },
      object.lines.map(({ mark, text }) => h("span", { class: "diff-line", "data-mark": mark.trim() || undefined }, `${mark} ${text}\n`))));
}
