// The playground: four texts, and what can be said of them.

import { ask } from "./api.js";
import { byId, h, toast } from "./dom.js";
import { editor, goTo, mark, setText, text } from "./editors.js";
import * as findings from "./findings.js";
import { decode, encode } from "./link.js";
import { startLive, view } from "./live.js";
import * as object from "./object.js";
import * as params from "./params.js";
import * as policies from "./policies.js";
import * as rules from "./rules.js";
import { tabs } from "./tabs.js";
import * as verdict from "./verdict.js";
import * as versions from "./versions.js";

/** How long to wait for the next letter. */
const PAUSE_MS = 120;

const selectTab = tabs(byId("tabs"));
const editors = {
  definition: editor("definition", "Definition and policies, YAML", "A CustomResourceDefinition, and policies behind ---", changed, complete),
  object: editor("object", "Object, YAML", "The object that is written", changed, complete),
  old: editor("old", "Old object, YAML", "What it was before: then this is an update", changed, complete),
  request: editor("request", "User and parameters, YAML", "user: {name: jane, groups: [devs]}\nnamespace: {name: harbour, labels: {}}\nparams: []", changed, complete),
};

const minors = byId("minors");
const texts = () => ({ ...Object.fromEntries(Object.entries(editors).map(([pane, view]) => [pane, text(view)])), minors: minors.value });

let pause;
let question;
function changed() {
  clearTimeout(pause);
  // An answer about older texts would undo what the forms wrote since.
  question?.abort();
  document.body.dataset.state = "typing";
  pause = setTimeout(evaluate, PAUSE_MS);
}

async function evaluate() {
  question?.abort();
  question = new AbortController();
  const { signal } = question;
  try {
    show(await ask("/evaluate", texts(), signal));
    document.body.dataset.state = "shown";
  } catch (error) {
    if (signal.aborted) return;
    document.body.dataset.state = "failed";
    if (/minor version|ends before it begins/.test(error.message)) minors.setAttribute("aria-invalid", "true");
    toast(`No verdict: ${error.message}`);
  }
}

function show(answer) {
  minors.removeAttribute("aria-invalid");
  versions.show(answer.minors);
  // Forms that are being written from are ahead of the answer.
  if (edits === 0) showForms(answer);
  const faults = answer.findings.filter(({ severity }) => severity === "error").length;
  verdict.show(answer.verdict, faults, answer.markers, jump);
  rules.show(rules.section(), answer.rules, { jump, bound: (wanted) => edit("/bound", wanted) });
  object.show(answer.object);
  policies.show(answer.policies, jump);
  findings.show(answer.findings, { jump, fix: (finding) => edit("/fix", { finding }) });
  for (const [pane, view] of Object.entries(editors)) {
    mark(view, answer.markers.filter((marker) => marker.pane === pane));
  }
}

function showForms(answer) {
  showWho(answer.user);
  params.show(answer.params, (param) => setRequest("/param", { param }, "The request can't be read: write the parameter into it by hand."));
}

function jump(pane, line) {
  if (pane !== "definition") selectTab(`tab-${pane}`);
  goTo(editors[pane], line);
}

function complete(pane, line, column) {
  return ask("/complete", { ...texts(), pane, line, column });
}

const [user, groups] = [byId("user"), byId("groups")];

/** What the request says of the user; a field that somebody types in is left alone. */
function showWho({ name, groups: names }) {
  if (document.activeElement !== user) user.value = name;
  if (document.activeElement !== groups) groups.value = names.join(", ");
}

/** Writes the user into the request. */
function setWho() {
  const names = groups.value.split(",").map((name) => name.trim()).filter(Boolean);
  return setRequest("/user", { user: { name: user.value.trim(), groups: names } }, "The request can't be read: write the user into it by hand.");
}

let edits = 0;
let lastEdit = Promise.resolve();

/** Takes over an edit of the request that the program makes, after those before it. */
function setRequest(path, wanted, otherwise) {
  edits += 1;
  lastEdit = lastEdit.then(async () => {
    try {
      const { text: edited } = await ask(path, { ...texts(), ...wanted });
      if (edited === null) return toast(otherwise);
      setText(editors.request, edited);
    } catch (error) {
      toast(error.message);
    } finally {
      edits -= 1;
    }
  });
  return lastEdit;
}

/** Takes over an edit of the definition that the program makes. */
async function edit(path, wanted) {
  try {
    const { text: edited } = await ask(path, { ...texts(), ...wanted });
    if (edited === null) return toast("This edit has to be made by hand.");
    setText(editors.definition, edited);
    toast("The definition is edited; undo with Ctrl-Z in it.");
  } catch (error) {
    toast(error.message);
  }
}

export function open({ definition = "", object = "", old = "", request = "", minors: asked = "" }) {
  minors.value = asked;
  for (const [pane, value] of Object.entries({ definition, object, old, request })) setText(editors[pane], value);
  selectTab("tab-object");
  evaluate();
}

minors.addEventListener("input", changed);
byId("who").addEventListener("change", setWho);
for (const form of ["who", "params"]) byId(form).addEventListener("submit", (event) => event.preventDefault());

byId("link").addEventListener("click", async () => {
  history.replaceState(null, "", `#${await encode(texts())}`);
  await copy(location.href, "The link is copied: it holds all four texts.");
});

byId("case").addEventListener("click", async () => {
  try {
    const { text: suite } = await ask("/case", texts());
    if (suite === null) return toast("There is no verdict to expect yet.");
    byId("dialog-text").textContent = suite;
    byId("dialog").showModal();
  } catch (error) {
    toast(error.message);
  }
});
byId("dialog-close").addEventListener("click", () => byId("dialog").close());
byId("dialog-copy").addEventListener("click", () => copy(byId("dialog-text").textContent, "The case is copied."));
byId("dialog-save").addEventListener("click", () => {
  const url = URL.createObjectURL(new Blob([byId("dialog-text").textContent], { type: "application/yaml" }));
  h("a", { href: url, download: "case.suite.yaml" }).click();
  URL.revokeObjectURL(url);
});

async function copy(text, done) {
  try {
    await navigator.clipboard.writeText(text);
    toast(done);
  } catch {
    toast("The browser does not let this page copy; the address bar has the link.");
  }
}

async function start() {
  const [examples, about] = await Promise.all([ask("/examples"), ask("/about")]);
  byId("version").textContent = `skiff ${about.version}`;
  byId("minors-known").append(...about.minors.map((minor) => h("option", { value: minor })));
  const select = byId("examples");
  select.append(...examples.map(({ name }, at) => h("option", { value: String(at) }, name)));
  select.addEventListener("change", () => {
    if (select.value !== "") open(examples[Number(select.value)]);
  });
  const linked = async () => {
    const texts = await decode(location.hash);
    if (texts) {
      if (about.live !== "none") view("playground");
      open(texts);
    }
    return texts !== undefined;
  };
  addEventListener("hashchange", linked);
  const live = about.live !== "none" && startLive(about.live, open);
  if (!(await linked()) && !live) {
    select.value = "0";
    open(examples[0]);
  }
}

start().catch((error) => toast(error.message));
