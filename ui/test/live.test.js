// The page beside a server: kinds, objects, changes as they come, rules.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { axe, newPage, start, stop } from "./browser.js";

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

test("axe finds nothing serious beside a server, in light and dark", async () => {
  for (const colorScheme of ["light", "dark"]) {
    const page = await opened(link, { colorScheme });
    await page.locator("#kind-title", { hasText: "/" }).waitFor();
    assert.deepEqual(await axe(page), []);
  }
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
