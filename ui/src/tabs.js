// Tabs by mouse and keys. Source: the tabs pattern of the ARIA Authoring Practices Guide.

/** Makes tabs of the buttons in a list. Returns a function that selects one by its id. */
export function tabs(list) {
  const all = [...list.querySelectorAll("[role=tab]")];
  const select = (tab) => {
    for (const other of all) {
      const is = other === tab;
      other.setAttribute("aria-selected", String(is));
      other.tabIndex = is ? 0 : -1;
      document.getElementById(other.getAttribute("aria-controls")).hidden = !is;
    }
  };
  list.addEventListener("click", (event) => {
    const tab = event.target.closest("[role=tab]");
    if (tab) select(tab);
  });
  list.addEventListener("keydown", (event) => {
    const at = all.indexOf(document.activeElement);
    const next = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: all.length - 1 }[event.key];
    if (at < 0 || next === undefined) return;
    event.preventDefault();
    const tab = all[(next + all.length) % all.length];
    select(tab);
    tab.focus();
  });
  return (id) => select(document.getElementById(id));
}
