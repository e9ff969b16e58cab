// A look at the server behind the page: kinds, objects, their changes as they come, rules and their costs.

import { ask } from "./api.js";
import { byId, fill, h, toast } from "./dom.js";
import { goTo, placeOf, routeOf } from "./route.js";
import * as rules from "./rules.js";
import { client, follow } from "./watch.js";

const DISCOVERY = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
const DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
/** How many changes stay on the page. */
const CHANGES_MAX = 200;
/** How long to wait for further changes of definitions. */
const SETTLE_MS = 300;

/** Shows the server, if the link had the secret of this run. `mode` is `read` or `write`. */
export function startLive(mode, open) {
  const token = takeToken();
  const root = byId("live");
  showViews();
  if (!token) {
    root.append(h("p", {}, "The link that skiff printed at its start has a secret. Open that link to see the server."));
    return true;
  }
  new Live(client(token), mode, open).start().catch((error) => toast(error.message));
  return true;
}

/** The secret, which leaves the address bar. */
function takeToken() {
  const [whole, token] = location.hash.match(/^#token=([0-9a-f]+)&?/) ?? [];
  if (token) {
    sessionStorage.setItem("token", token);
    const rest = location.hash.slice(whole.length);
    history.replaceState(null, "", rest ? `#${rest}` : location.pathname);
  }
  return token ?? sessionStorage.getItem("token");
}

function showViews() {
  const nav = byId("views");
  nav.hidden = false;
  const buttons = [["live", "Server"], ["playground", "Playground"]].map(([id, label]) =>
    h("button", { type: "button", id: `view-${id}`, onclick: () => view(id) }, label));
  nav.append(...buttons);
  view("live");
}

/** Shows the server or the playground. */
export function view(id) {
  for (const it of ["live", "playground"]) {
    byId(it).hidden = it !== id;
    if (it === id) byId(`view-${it}`).setAttribute("aria-current", "page");
    else byId(`view-${it}`).removeAttribute("aria-current");
  }
  for (const it of document.querySelectorAll(".top .tools > *")) it.hidden = id !== "playground";
}

class Live {
  constructor(api, mode, open) {
    Object.assign(this, { api, mode, tryIn: open, resources: [], own: [], rows: new Map(), columns: [] });
    this.kinds = h("nav", { "aria-label": "Kinds" });
    this.title = h("h2", { id: "kind-title", tabindex: "-1" }, "Choose a kind");
    this.table = h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Objects" });
    this.log = h("ol", { class: "changes-log", tabindex: "0", "aria-label": "Changes" });
    this.object = h("section", { "aria-label": "Object", hidden: true });
    this.rules = h("section", { "aria-label": "Rules", hidden: true }, h("h2", {}, "Rules"), h("div"));
    byId("live").className = "live";
    byId("live").append(
      this.kinds,
      h("div", { class: "stack" },
        h("section", { "aria-labelledby": "kind-title" }, this.title, this.table),
        this.object,
        h("section", { "aria-label": "Changes" }, h("h2", {}, "Changes"), this.log),
        this.rules));
  }

  async start() {
    await this.showKinds();
    if (!(await this.restore())) this.chooseFirst();
    addEventListener("popstate", () => this.restore().catch((error) => toast(error.message)));
    this.followDefinitions();
  }

  /** Shows the kind, and the object, that the address names; whether it names a kind that there is. */
  async restore() {
    const { kind, object } = routeOf(location.hash);
    const resource = this.resources.find((it) => placeOf(it) === kind);
    if (!resource) return false;
    view("live");
    this.choose(resource);
    if (object) await this.show(object).catch((error) => toast(error.message));
    return true;
  }

  chooseFirst() {
    const first = this.own[0] ?? this.resources.find(({ name }) => name === "namespaces");
    if (first) this.choose(first);
  }

  /** Kinds that are defined later are listed, and those that are gone are not; a definition that changes has other rules. */
  followDefinitions() {
    let pause;
    const changed = () => {
      clearTimeout(pause);
      pause = setTimeout(() => this.refresh().catch((error) => toast(error.message)), SETTLE_MS);
    };
    follow(this.api, DEFINITIONS, { signal: new AbortController().signal, listed: changed, changed, failed: (error) => toast(error.message) });
  }

  async refresh() {
    await this.showKinds();
    const same = this.resources.find((it) => it.path === this.resource?.path);
    if (!same) return this.chooseFirst();
    this.resource = same;
    same.button.setAttribute("aria-current", "true");
    await this.showRules(same);
  }

  async showKinds() {
    const [core, groups] = await Promise.all(["/api", "/apis"].map(async (path) => (await this.api(path, { accept: DISCOVERY })).json()));
    const definitions = await (await this.api(DEFINITIONS)).json();
    const custom = new Map(definitions.items.map((definition) => [definition.metadata.name, definition]));
    const resources = [...groups.items, ...core.items].flatMap(resourcesOf);
    const own = resources.filter(({ name, group }) => custom.has(`${name}.${group}`));
    const others = resources.filter((resource) => !own.includes(resource));
    Object.assign(this, { resources, own });
    fill(this.kinds,
      h("h2", {}, "Your kinds"), own.length ? own.map((it) => this.kindButton(it)) : h("p", { class: "quiet small" }, "No definition is registered."),
      h("details", { "data-key": "built-in" }, h("summary", {}, `Built-in kinds (${others.length})`), others.map((it) => this.kindButton(it))));
  }

  kindButton(resource) {
    const { kind, group, version, name } = resource;
    const id = `kind-${name}.${group}.${version}`;
    resource.button = h("button", { type: "button", "data-key": id, onclick: () => this.go(resource) }, kind, " ", h("small", {}, group ? `${group}/${version}` : version));
    return resource.button;
  }

  /** Shows a kind. */
  go(resource) {
    goTo(resource, "");
    this.choose(resource);
  }

  choose(resource) {
    this.following?.abort();
    this.following = new AbortController();
    this.resource = resource;
    for (const button of this.kinds.querySelectorAll("[aria-current]")) button.removeAttribute("aria-current");
    resource.button.setAttribute("aria-current", "true");
    this.title.textContent = `${resource.kind} ${resource.group ? `${resource.group}/` : ""}${resource.version}`;
    this.object.hidden = true;
    this.rules.hidden = true;
    this.definition = undefined;
    this.isListed = false;
    fill(this.log);
    this.showRules(resource).catch((error) => toast(error.message));
    follow(this.api, resource.path, {
      signal: this.following.signal,
      listed: (table) => this.list(table),
      changed: (type, table) => this.change(type, table),
      failed: (error) => toast(error.message),
    });
  }

  /** The first list of a kind; a later one, after a watch that has ended, also tells what changed in between. */
  list({ columnDefinitions, rows }) {
    this.columns = columnDefinitions ?? [];
    const now = new Map((rows ?? []).map((row) => [key(row), row]));
    if (this.isListed) for (const [type, name] of changesBetween(this.rows, now)) this.tell(type, name);
    Object.assign(this, { rows: now, isListed: true });
    this.draw();
  }

  change(type, { rows }) {
    for (const row of rows ?? []) {
      if (type === "DELETED") this.rows.delete(key(row));
      else if (type !== "BOOKMARK") this.rows.set(key(row), row);
      if (type !== "BOOKMARK") this.tell(type, key(row));
    }
    this.draw();
  }

  /** Puts a change on top of those that are shown. */
  tell(type, name) {
    this.log.prepend(h("li", { "data-type": type }, h("time", {}, new Date().toLocaleTimeString()), " ", h("b", {}, type), ` ${name}`));
    while (this.log.childElementCount > CHANGES_MAX) this.log.lastElementChild.remove();
  }

  draw() {
    const shown = this.columns.map((column, at) => ({ ...column, at })).filter(({ priority }) => priority === 0);
    const isNamespaced = this.resource.scope === "Namespaced";
    const row = (row) => h("tr", {}, isNamespaced && h("td", {}, row.object.metadata.namespace), shown.map(({ at, name }) =>
      h("td", {}, name === "Name" ? h("button", { type: "button", "data-key": `row-${key(row)}`, onclick: () => this.open(key(row)) }, String(row.cells[at])) : String(row.cells[at] ?? ""))));
    const rows = [...this.rows.values()];
    fill(this.table, rows.length === 0
      ? h("p", { class: "quiet" }, "There are none.")
      : h("table", { class: "objects" },
        h("thead", {}, h("tr", {}, isNamespaced && h("th", { scope: "col" }, "Namespace"), shown.map(({ name }) => h("th", { scope: "col" }, name)))),
        h("tbody", {}, rows.map(row))));
  }

  /** The path of an object by its key. */
  pathOf(key) {
    const { base, name } = this.resource;
    const [namespace, own] = key.includes("/") ? key.split("/") : ["", key];
    const within = namespace ? `/namespaces/${encodeURIComponent(namespace)}` : "";
    return `${base}${within}/${name}/${encodeURIComponent(own)}`;
  }

  open(key) {
    goTo(this.resource, key);
    this.show(key).catch((error) => toast(error.message));
  }

  async show(key) {
    const path = this.pathOf(key);
    const text = await (await this.api(path, { accept: "application/yaml" })).text();
    const writes = this.mode === "write";
    const area = writes && h("textarea", { "aria-label": "The object as YAML", spellcheck: "false" });
    if (area) area.value = text;
    this.object.hidden = false;
    fill(this.object,
      h("h2", { tabindex: "-1" }, key.split("/").at(-1)),
      area || h("pre", { class: "document", tabindex: "0", "aria-label": "The object as YAML" }, text),
      h("p", { class: "tools" },
        writes && h("button", { type: "button", onclick: () => this.write(path, "PUT", area.value) }, "Save"),
        writes && h("button", { type: "button", class: "danger", onclick: () => this.write(path, "DELETE") }, "Delete"),
        this.definition && h("button", { type: "button", onclick: () => this.tryOut(text) }, "Try changes in the playground")));
    this.object.querySelector("h2").focus();
  }

  async write(path, method, body) {
    if (method === "DELETE" && !confirm("Delete this object?")) return;
    try {
      await this.api(path, { method, body, headers: body === undefined ? {} : { "content-type": "application/yaml" } });
      toast(method === "PUT" ? "Saved." : "Deleted.");
      if (method === "DELETE") this.close();
    } catch (error) {
      toast(error.message);
    }
  }

  /** What was deleted is not shown any more. */
  close() {
    this.object.hidden = true;
    goTo(this.resource, "");
    this.title.focus();
  }

  tryOut(text) {
    view("playground");
    this.tryIn({ definition: this.definition, object: text, old: text });
  }

  /** The definition of a kind, its rules and their costs; what is shown of it already stays. */
  async showRules({ name, group, path }) {
    if (!this.own.some((it) => it.path === path)) return;
    const definition = await (await this.api(`${DEFINITIONS}/${name}.${group}`, { accept: "application/yaml" })).text();
    if (this.resource.path !== path || this.definition === definition) return;
    this.definition = definition;
    const { rules: found } = await ask("/evaluate", { definition });
    if (this.definition !== definition) return;
    this.rules.hidden = false;
    rules.show(this.rules.lastElementChild, found, {});
  }
}

/** What went, came and changed from one list to the next: a type of event and a key each. */
function changesBetween(before, now) {
  const revision = (row) => row.object.metadata.resourceVersion;
  const gone = [...before.keys()].filter((name) => !now.has(name)).map((name) => ["DELETED", name]);
  const others = [...now].map(([name, row]) => {
    const old = before.get(name);
    if (!old) return ["ADDED", name];
    return revision(old) === revision(row) ? undefined : ["MODIFIED", name];
  });
  return [...gone, ...others.filter(Boolean)];
}

/** The resources of a group in its preferred version that can be listed and watched. */
function resourcesOf({ metadata, versions }) {
  const group = metadata.name ?? "";
  const [{ version, resources }] = versions;
  const base = group ? `/apis/${group}/${version}` : `/api/${version}`;
  return resources.filter(({ verbs }) => verbs.includes("list") && verbs.includes("watch")).map(({ resource, responseKind, scope }) => (
    { name: resource, kind: responseKind.kind, scope, group, version, base, path: `${base}/${resource}` }));
}

const key = ({ object: { metadata } }) => (metadata.namespace ? `${metadata.namespace}/${metadata.name}` : metadata.name);
