// The page beside a server: kinds, objects, changes as they come, rules.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { axe, newPage, start, stop, type } from "./browser.js";

const { SKIFF_LIVE: link, SKIFF_LIVE_WRITE: writeLink, SKIFF_PLAIN: api } = process.env;
before(start);
after(stop);

const RELEASES = "/apis/rules.example.com/v1/namespaces/default/releases";
const release = (name) => ({
  apiVersion: "rules.example.com/v1", kind: "Release", metadata: { name },
  spec: { regions: ["eu"], from: 1, to: 2 },
});

async function request(method, path, body) {
  const headers = { "content-type": "application/json" };
  const answer = await fetch(`${api}${path}`, { method, headers, body: body && JSON.stringify(body) });
  assert.ok(answer.ok, await answer.text());
}

async function opened(link, options) {
  const page = await newPage(options);
  await page.goto(link);
  await page.waitForSelector("#live nav button");
  return page;
}

test("kinds, objects and their changes are shown, and rules with their costs", async () => {
  const page = await opened(link);
  assert.doesNotMatch(page.url(), /token/);
  await page.getByRole("button", { name: /^CronTable / }).click();
  await page.getByText("There are none.").waitFor();
  const object = (name) => ({ apiVersion: "jobs.example.com/v1", kind: "CronTable", metadata: { name }, spec: { schedule: "* * * * *", command: ["a"] } });
  const path = "/apis/jobs.example.com/v1/namespaces/default/crontables";
  await request("POST", path, object("tidy"));
  await page.locator(".objects", { hasText: "tidy" }).waitFor();
  await page.locator(".changes-log", { hasText: "ADDED default/tidy" }).waitFor();
  await page.getByRole("button", { name: "tidy", exact: true }).click();
  await page.locator(".document", { hasText: "timeZone: Etc/UTC" }).waitFor();
  assert.equal(await page.getByRole("button", { name: "Save" }).count(), 0);
  await page.getByRole("button", { name: /playground/ }).last().click();
  await page.waitForFunction(() => document.querySelector("#verdict-head").textContent.startsWith("Updated"));
  await page.click("#view-live");
  await request("DELETE", `${path}/tidy`);
  await page.locator(".changes-log", { hasText: "DELETED default/tidy" }).waitFor();
  await page.getByRole("button", { name: /^Release / }).click();
  await page.locator("#live .cost").first().waitFor();
  assert.deepEqual(page.faults, []);
});

test("axe finds nothing serious in any view beside a server, in light and dark", async () => {
  for (const colorScheme of ["light", "dark"]) {
    for (const [mode, at] of [["read", link], ["write", writeLink]]) {
      const page = await opened(at, { colorScheme });
      await page.locator("#kind-title", { hasText: "/" }).waitFor();
      assert.deepEqual(await axe(page), [], `${colorScheme} ${mode} kinds`);
      await page.getByText("Built-in kinds").click();
      await page.getByRole("button", { name: /^Namespace v1/ }).click();
      await page.getByRole("button", { name: "default", exact: true }).click();
      await page.getByLabel("The object as YAML").waitFor();
      assert.deepEqual(await axe(page), [], `${colorScheme} ${mode} object`);
      await page.click("#view-playground");
      assert.deepEqual(await axe(page), [], `${colorScheme} ${mode} playground`);
    }
  }
});

const definition = (plural, kind) => ({
  apiVersion: "apiextensions.k8s.io/v1", kind: "CustomResourceDefinition", metadata: { name: `${plural}.late.example.com` },
  spec: {
    group: "late.example.com", scope: "Namespaced", names: { plural, singular: plural.slice(0, -1), kind },
    versions: [{ name: "v1", served: true, storage: true, schema: { openAPIV3Schema: { type: "object", properties: { spec: { type: "object", properties: { size: { type: "integer" } }, "x-kubernetes-validations": [{ rule: "self.size > 1" }] } } } } }],
  },
});
const DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

test("a kind that is defined later is listed, and goes with its definition", async () => {
  const page = await opened(link);
  await page.getByRole("button", { name: /^Release / }).click();
  await request("POST", DEFINITIONS, definition("latecomers", "Latecomer"));
  const button = page.getByRole("button", { name: /^Latecomer / });
  await button.click();
  await page.getByText("There are none.").waitFor();
  await page.locator("#live .cost").first().waitFor();
  await request("DELETE", `${DEFINITIONS}/latecomers.late.example.com`);
  await button.waitFor({ state: "detached" });
  // Something that is there is shown in its place.
  await page.locator("#live [aria-current=true]").waitFor();
  assert.doesNotMatch(await page.locator("#kind-title").textContent(), /Latecomer/);
});

test("a kind and an object have addresses that stay", async () => {
  const path = "/api/v1/namespaces/default/configmaps";
  await request("POST", path, { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "kept" }, data: { a: "1" } });
  const page = await opened(link);
  await page.getByText("Built-in kinds").click();
  await page.getByRole("button", { name: /^ConfigMap v1/ }).click();
  await page.getByRole("button", { name: "kept", exact: true }).click();
  await page.getByRole("heading", { name: "kept" }).waitFor();
  assert.equal(new URL(page.url()).hash, "#kind=configmaps.v1&object=default/kept");
  await page.reload();
  await page.getByRole("heading", { name: "kept" }).waitFor();
  await page.goBack();
  await page.getByRole("heading", { name: "kept" }).waitFor({ state: "hidden" });
  assert.match(await page.locator("#kind-title").textContent(), /^ConfigMap v1$/);
  // The link of this run may name a place, too.
  const other = await newPage();
  await other.goto(`${link}&kind=configmaps.v1&object=default/kept`);
  await other.getByRole("heading", { name: "kept" }).waitFor();
  assert.doesNotMatch(other.url(), /token/);
  // A link to texts opens the playground, and stays.
  await other.click("#view-playground");
  await type(other, "definition", "a: 1");
  await other.click("#link");
  await other.waitForFunction(() => location.hash.startsWith("#z="));
  await other.reload();
  await other.waitForFunction(() => document.querySelector("#definition .cm-content").textContent === "a: 1");
  assert.equal(await other.locator("#live").isVisible(), false);
  assert.deepEqual([...page.faults, ...other.faults], []);
});

test("without the secret nothing is shown", async () => {
  const page = await newPage();
  await page.goto(new URL("/", link).href);
  await page.getByText("has a secret").waitFor();
  const status = (headers) => page.evaluate((headers) => fetch("/live/api", { headers }).then((it) => it.status), headers);
  assert.equal(await status({}), 401);
  assert.equal(await status({ authorization: `Bearer ${"0".repeat(64)}` }), 401);
});

test("it changes objects only where that was asked for", async () => {
  const path = "/api/v1/namespaces/default/configmaps";
  await request("POST", path, { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "mine" }, data: { a: "1" } });
  const [, token] = link.split("token=");
  const reading = await opened(link);
  const refused = await reading.evaluate(([path, token]) => fetch(`/live${path}/mine`, { method: "DELETE", headers: { authorization: `Bearer ${token}` } }).then((it) => it.status), [path, token]);
  assert.equal(refused, 403);
  const page = await opened(writeLink);
  page.on("dialog", (dialog) => dialog.accept());
  await page.getByText("Built-in kinds").click();
  await page.getByRole("button", { name: /^Namespace v1/ }).click();
  await page.getByRole("button", { name: "default", exact: true }).click();
  const area = page.getByLabel("The object as YAML");
  await area.fill((await area.inputValue()).replace("  labels:", "  labels:\n    by: the-page"));
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByText("Saved.").waitFor();
  await page.locator(".changes-log", { hasText: "MODIFIED default" }).waitFor();
});

test("an object is deleted, and what the server refuses is told", async () => {
  const page = await opened(writeLink);
  const [, token] = writeLink.split("token=");
  const sent = (method, path, body) => page.evaluate(async ([method, path, body, token]) => {
    const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
    return (await fetch(`/live${path}`, { method, headers, body: body && JSON.stringify(body) })).status;
  }, [method, path, body, token]);
  assert.equal(await sent("POST", DEFINITIONS, definition("movers", "Mover")), 201);
  await page.getByRole("button", { name: /^Mover / }).click();
  const path = "/apis/late.example.com/v1/namespaces/default/movers";
  const mover = (size) => ({ apiVersion: "late.example.com/v1", kind: "Mover", metadata: { name: "one" }, spec: { size } });
  assert.equal(await sent("POST", path, mover(2)), 201);
  await page.getByRole("button", { name: "one", exact: true }).click();
  const area = page.getByLabel("The object as YAML");
  const write = async (from, to) => {
    await area.fill((await area.inputValue()).replace(from, to));
    await page.getByRole("button", { name: "Save" }).click();
  };
  await write("size: 2", "size: 1");
  await page.locator("#toast", { hasText: "failed rule: self.size > 1" }).waitFor();
  // Under a stricter rule what is left alone stays as it is: the server ratchets.
  const stricter = definition("movers", "Mover");
  stricter.spec.versions[0].schema.openAPIV3Schema.properties.spec["x-kubernetes-validations"][0].rule = "self.size > 5";
  const { metadata } = await page.evaluate(async ([path, token]) => (await fetch(`/live${path}`, { headers: { authorization: `Bearer ${token}` } })).json(), [`${DEFINITIONS}/movers.late.example.com`, token]);
  stricter.metadata.resourceVersion = metadata.resourceVersion;
  assert.equal(await sent("PUT", `${DEFINITIONS}/movers.late.example.com`, stricter), 200);
  await page.locator("#live", { hasText: "self.size > 5" }).waitFor();
  await page.getByRole("button", { name: "one", exact: true }).click();
  await page.waitForFunction(() => document.querySelector("textarea").value.includes("size: 2"));
  await write("metadata:\n", "metadata:\n  labels: {by: page}\n");
  await page.getByText("Saved.").waitFor();
  page.on("dialog", (dialog) => dialog.accept());
  await page.getByRole("button", { name: "Delete" }).click();
  await page.getByText("Deleted.").waitFor();
  await page.locator(".changes-log", { hasText: "DELETED default/one" }).waitFor();
  await page.getByText("There are none.").waitFor();
  assert.equal(await area.isVisible(), false);
});
