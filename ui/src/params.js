// The parameters of policies: a field for each that some policy reads.

import { byId, h } from "./dom.js";

let drawn = "";

/** Shows the fields; `set` is asked to write one. A field that somebody types in is left alone. */
export function show(holders, set) {
  const form = byId("params");
  form.hidden = holders.length === 0;
  const fields = holders.flatMap((holder) => holder.fields.map((field) => ({ holder, field })));
  const shape = JSON.stringify(holders.map(({ apiVersion, kind, name, fields }) => [apiVersion, kind, name, fields.map(({ path, options }) => [path, options])]));
  if (shape !== drawn) {
    drawn = shape;
    let number = 0;
    form.replaceChildren(...holders.map(({ apiVersion, kind, name, namespace, fields }) => h("fieldset", {},
      h("legend", {}, `${kind} ${namespace ? `${namespace}/` : ""}${name}`),
      fields.map((field) => control(`param-${number++}`, field, (value) => set({ apiVersion, kind, name, path: field.path, value }))))));
  }
  fields.forEach(({ field }, at) => {
    const input = byId(`param-${at}`);
    if (document.activeElement !== input) input.value = field.value;
  });
}

function control(id, { path, type, options }, write) {
  const choices = options.length > 0 ? options : type === "boolean" ? ["true", "false"] : [];
  const attributes = { id, spellcheck: "false", autocomplete: "off", onchange: (event) => write(event.target.value) };
  const input = choices.length > 0
    ? h("select", attributes, h("option", { value: "" }, "not set"), choices.map((choice) => h("option", { value: choice }, choice)))
    : h("input", { ...attributes, placeholder: "not set", inputmode: type === "integer" || type === "number" ? "decimal" : null });
  return h("span", { class: "field" }, h("label", { for: id }, path.join(".")), input);
}
