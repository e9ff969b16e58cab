// Elements from data. Texts become text nodes: nothing that was typed is ever read as HTML.

/** An element with attributes (`on…` are listeners, `style` an object) and children (elements, texts, lists, nothing). */
export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "style") Object.assign(element.style, value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

export const byId = (id) => document.getElementById(id);

/** Replaces what an element holds, but keeps which details are open and what has the focus (both by `data-key`). */
export function fill(element, ...children) {
  const details = [...element.querySelectorAll("details[data-key]")].map((it) => [it.dataset.key, it.open]);
  const opened = new Map(details);
  const focused = element.contains(document.activeElement) ? document.activeElement.dataset.key : undefined;
  element.replaceChildren(...children.flat(Infinity).filter(Boolean));
  for (const it of element.querySelectorAll("details[data-key]")) {
    if (opened.has(it.dataset.key)) it.open = opened.get(it.dataset.key);
  }
  if (focused) element.querySelector(`[data-key="${CSS.escape(focused)}"]`)?.focus();
}

let toasting;
/** Says something for a moment. */
export function toast(text) {
  const element = byId("toast");
  element.textContent = text;
  element.classList.add("shown");
  clearTimeout(toasting);
  toasting = setTimeout(() => element.classList.remove("shown"), 4000);
}

export const grouped = (number) => number.toLocaleString("en-US");
