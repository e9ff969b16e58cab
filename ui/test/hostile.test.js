// What a page of another origin reaches: nothing.

import assert from "node:assert/strict";
import { createServer } from "node:http";
import { after, before, test } from "node:test";
import { REBOUND, newPage, start, stop, url } from "./browser.js";

/** The API behind the page, if there is one that may be written to. */
const { SKIFF_PLAIN: api } = process.env;
const { port } = new URL(url);
let server;
before(async () => {
  await start();
  server = createServer((_, answer) => answer.setHeader("content-type", "text/html").end("<!doctype html><title>hostile</title>"));
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
});
after(async () => {
  await stop();
  server.close();
});

/** A page of another port of this machine, or of another name for it. */
async function hostile(host) {
  const page = await newPage();
  await page.goto(`http://${host}:${server.address().port}/`);
  return page;
}

for (const host of ["127.0.0.1", "localhost", REBOUND]) {
  test(`a page at ${host} can't ask`, async () => {
    const page = await hostile(host);
    const tried = await page.evaluate(async (url) => {
      const body = JSON.stringify({ definition: "a: 1" });
      const outcome = (answer) => answer.then(({ type, status }) => `${type} ${status}`, () => "failed");
      const fetched = {
        json: await outcome(fetch(`${url}evaluate`, { method: "POST", body, headers: { "content-type": "application/json" } })),
        simple: await outcome(fetch(`${url}evaluate`, { method: "POST", body })),
        read: await outcome(fetch(`${url}examples`)),
        api: await outcome(fetch(`${url}live/api`, { headers: { authorization: "Bearer x" } })),
      };
      const loaded = (tag, attributes) => new Promise((done) => {
        const element = Object.assign(document.createElement(tag), attributes);
        element.onload = () => done("loaded");
        element.onerror = () => done("failed");
        document.body.append(element);
      });
      const socket = new Promise((done) => {
        const socket = new WebSocket(`${url.replace("http", "ws")}live/api`);
        socket.onopen = () => done("open");
        socket.onerror = () => done("failed");
      });
      return {
        ...fetched,
        image: await loaded("img", { src: `${url}icon.svg` }),
        script: await loaded("script", { src: `${url}page.js` }),
        style: await loaded("link", { rel: "stylesheet", href: `${url}page.css` }),
        socket: await socket,
      };
    }, url);
    assert.deepEqual([...new Set(Object.values(tried))], ["failed"], JSON.stringify(tried));
  });

  test(`a page at ${host} can't post a form, nor frame the page, nor read its window`, async () => {
    const page = await hostile(host);
    const framed = await page.evaluate((url) => new Promise((done) => {
      const frame = Object.assign(document.createElement("iframe"), { src: url });
      frame.onload = () => {
        try {
          done(frame.contentDocument ? "an error page" : "unreadable");
        } catch {
          done("unreadable");
        }
      };
      document.body.append(frame);
    }), url);
    assert.equal(framed, "unreadable");
    const frame = page.frames().find((it) => it !== page.mainFrame());
    assert.equal(await frame.locator("#verdict").count(), 0);
    const opened = await page.evaluate((url) => globalThis.open(url) === null || "a window", url);
    assert.ok(opened);
    const [answer] = await Promise.all([
      page.waitForResponse((response) => response.url().endsWith("/evaluate")).catch(() => undefined),
      page.evaluate((url) => {
        const form = Object.assign(document.createElement("form"), { method: "post", action: `${url}evaluate`, enctype: "text/plain" });
        form.innerHTML = "<input name='{\"definition\":\"' value='\"}'>";
        document.body.append(form);
        form.submit();
      }, url),
    ]);
    assert.ok(answer === undefined || answer.status() === 403, String(answer?.status()));
  });
}

for (const host of ["127.0.0.1", "localhost", REBOUND]) {
  test(`a page at ${host} can't change anything in a server behind the page`, { skip: !api }, async () => {
    const path = `/api/v1/namespaces/default/configmaps`;
    const headers = { "content-type": "application/json" };
    const name = `of-${host.replaceAll(".", "-")}`;
    const object = { apiVersion: "v1", kind: "ConfigMap", metadata: { name }, data: { a: "1" } };
    const made = await fetch(`${api}${path}`, { method: "POST", headers, body: JSON.stringify(object) });
    const { metadata } = await made.json();
    const page = await hostile(host);
    const tried = await page.evaluate(async ([url, path, name]) => {
      const at = `${url}live${path}`;
      const of = (name) => JSON.stringify({ apiVersion: "v1", kind: "ConfigMap", metadata: { name }, data: { a: "2" } });
      const [changed, made] = [of(name), of(`${name}-new`)];
      const outcome = (answer) => answer.then(({ type, status }) => `${type} ${status}`, () => "failed");
      const authorization = `Bearer ${"0".repeat(64)}`;
      return [
        await outcome(fetch(`${at}/${name}`, { method: "DELETE" })),
        await outcome(fetch(`${at}/${name}`, { method: "DELETE", headers: { authorization } })),
        await outcome(fetch(`${at}/${name}`, { method: "PUT", body: changed, headers: { authorization, "content-type": "application/json" } })),
        await outcome(fetch(at, { method: "POST", body: made })),
        // What needs no permission of the other side may be sent; nobody can read the answer.
        (await outcome(fetch(at, { method: "POST", body: made, mode: "no-cors", credentials: "include" }))).replace("opaque 0", "failed"),
      ];
    }, [url, path, name]);
    assert.deepEqual([...new Set(tried)], ["failed"], tried.join(", "));
    await Promise.all([
      page.waitForResponse((response) => response.url().includes("/live/")).catch(() => undefined),
      page.evaluate(([url, path]) => {
        const form = Object.assign(document.createElement("form"), { method: "post", action: `${url}live${path}`, enctype: "text/plain" });
        form.innerHTML = "<input name='{\"kind\":\"' value='ConfigMap\"}'>";
        document.body.append(form);
        form.submit();
      }, [url, path]),
    ]);
    const kept = await (await fetch(`${api}${path}/${name}`)).json();
    assert.equal(kept.metadata.resourceVersion, metadata.resourceVersion);
    assert.equal((await fetch(`${api}${path}/${name}-new`)).status, 404);
  });
}

test("a name that is made to point here is another host", async () => {
  const page = await newPage();
  const answer = await page.goto(`http://${REBOUND}:${port}/`);
  assert.equal(answer.status(), 403);
  assert.doesNotMatch(await page.content(), /Definition/);
});
