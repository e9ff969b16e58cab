// Where the look at a server is, in the fragment of its address: `#kind=boats.v1.harbour.example.com&object=default/daisy`.

/** How the address names a kind. */
export const placeOf = ({ name, group, version }) => [name, version, group].filter(Boolean).join(".");

/** The kind and the object that a fragment names; empty for what it does not. */
export function routeOf(fragment) {
  const [, kind = "", object = ""] = fragment.match(/^#kind=([\w.-]+)(?:&object=([\w./:-]+))?$/) ?? [];
  return { kind, object };
}

/** Gives what is shown an address of its own, to which the browser's buttons lead back. */
export function goTo(resource, object) {
  const fragment = `#kind=${placeOf(resource)}${object && `&object=${object}`}`;
  if (location.hash !== fragment) history.pushState(null, "", fragment);
}
