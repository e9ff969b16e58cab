// The playground, as somebody uses it.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { axe, colours, layout, newPage, playground, shown, start, stop, type, url, verdict } from "./browser.js";

before(start);
after(stop);

const DEFINITION = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: boats.harbour.example.com
spec:
  group: harbour.example.com
  scope: Namespaced
  names: {plural: boats, singular: boat, kind: Boat}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              length:
                type: integer
              rig:
                type: string
                default: sloop
              crew:
                type: array
                maxItems: 8
                items:
                  type: string
            x-kubernetes-validations:
            - rule: self.length >= 9
              message: a boat is long
`;
const BOAT = "apiVersion: harbour.example.com/v1\nkind: Boat\nmetadata:\n  name: daisy\n  namespace: default\nspec:\n  length: 7\n  crew: []\n";
const LONG = BOAT.replace("7", "12");

test("typing changes the verdict, and the line is underlined", async () => {
  const page = await playground();
  await type(page, "definition", DEFINITION);
  await type(page, "object", BOAT);
  assert.match(await verdict(page), /^Refused/);
  assert.match(await page.locator(".errors").textContent(), /a boat is long/);
  assert.match(await page.locator(".errors .values").textContent(), /self\.length\s*7/);
  assert.match(await page.locator("#object .cm-lintRange-error").first().textContent(), /spec/);
  await type(page, "object", LONG);
  assert.match(await verdict(page), /^Created/);
  assert.match(await page.locator(".changes").textContent(), /spec\.rig added "sloop"/);
  assert.equal(await page.locator("#object .cm-lintRange-error").count(), 0);
  await page.click("#tab-old");
  await type(page, "old", LONG);
  assert.match(await verdict(page), /^Updated/);
  await page.click("#tab-object");
  await type(page, "object", "spec: [");
  assert.match(await verdict(page), /can't be read/);
  assert.match(await page.locator(".errors").textContent(), /line 1/);
  assert.deepEqual(page.faults, []);
});

test("an update is forgiven what it leaves alone", async () => {
  const page = await playground();
  const crew = DEFINITION.replace("                  type: string\n            x-", "                  type: string\n                  maxLength: 3\n            x-");
  await type(page, "definition", crew);
  const before = LONG.replace("crew: []", "crew: [anna]");
  await type(page, "object", before);
  assert.match(await verdict(page), /^Refused/);
  await page.click("#tab-old");
  await type(page, "old", before);
  await page.click("#tab-object");
  await type(page, "object", before.replace("length: 12", "length: 13"));
  assert.match(await verdict(page), /^Updated/);
  assert.match(await page.locator(".notes").textContent(), /Forgiven, as the update left the values alone.*spec\.crew\[0\]/);
  // What it changes is not.
  await type(page, "object", before.replace("anna", "annika"));
  assert.match(await verdict(page), /^Refused/);
  assert.match(await page.locator(".errors").textContent(), /spec\.crew\[0\]/);
  assert.deepEqual(page.faults, []);
});

test("the definitions of a project are among the examples", { skip: !process.env.SKIFF_PROJECT }, async () => {
  const page = await newPage();
  await page.goto(process.env.SKIFF_PROJECT);
  await shown(page);
  // The first is open, with the object of its kind; a second has none.
  assert.match(await verdict(page), /^Refused/);
  assert.match(await page.locator(".errors").textContent(), /a boat is long/);
  const names = await page.locator("#examples option:not([value=''])").allTextContents();
  assert.deepEqual(names.slice(0, 2), ["boats.harbour.example.com (crds/boats.yaml)", "piers.harbour.example.com (crds/piers.yaml)"]);
  await page.selectOption("#examples", "1");
  await page.waitForFunction(() => document.querySelector("#definition .cm-content").textContent.includes("piers.harbour"));
  assert.deepEqual(page.faults, []);
});

test("every example opens", async () => {
  const page = await playground();
  const names = await page.locator("#examples option:not([value=''])").allTextContents();
  assert.ok(names.length >= 9);
  for (const name of names) {
    await page.selectOption("#examples", name);
    await page.waitForFunction(() => document.body.dataset.state === "shown" && document.querySelector("#verdict-head").textContent !== "");
    assert.match(await verdict(page), /^(Created|Refused|Updated)/, name);
  }
  assert.deepEqual(page.faults, []);
});

test("fields and functions are completed", async () => {
  const page = await playground();
  await type(page, "definition", DEFINITION);
  await type(page, "object", `${BOAT}  `);
  await page.keyboard.press("Control+End");
  await page.keyboard.press("Control+Space");
  await page.waitForSelector(".cm-tooltip-autocomplete");
  assert.match(await page.locator(".cm-tooltip-autocomplete").textContent(), /rig/);
  await page.keyboard.press("Escape");
  await type(page, "definition", DEFINITION.replace(/self\.length >= 9\n.*\n/, "self.crew."));
  await page.keyboard.press("Control+End");
  await page.keyboard.press("Control+Space");
  await page.waitForSelector(".cm-tooltip-autocomplete");
  assert.match(await page.locator(".cm-tooltip-autocomplete").textContent(), /exists_one.*size/);
});

test("fixes and bounds are clicked", async () => {
  const page = await playground();
  await type(page, "definition", DEFINITION);
  await page.locator("#findings summary").click();
  await page.locator("#findings button.fix").first().click();
  await page.waitForFunction(() => document.querySelector("#definition .cm-content").textContent.includes("x-kubernetes-list-type"));
  const dear = DEFINITION.replace("                maxItems: 8\n", "").replace("self.length >= 9", "self.crew.all(a, self.crew.exists(b, a == b))");
  await type(page, "definition", dear);
  assert.match(await page.locator("#rules").textContent(), /Set maxItems/);
  await page.locator("#rules button.fix").first().click();
  await page.waitForFunction(() => !document.querySelector("#rules [data-level=over]"));
});

test("a case is written that skiff test passes", async () => {
  const page = await playground();
  await type(page, "definition", DEFINITION);
  await type(page, "object", BOAT);
  await page.click("#case");
  await page.waitForSelector("#dialog[open]");
  const suite = await page.locator("#dialog-text").textContent();
  const folder = mkdtempSync(join(tmpdir(), "skiff-"));
  writeFileSync(join(folder, "definition.yaml"), DEFINITION);
  writeFileSync(join(folder, "case.suite.yaml"), suite);
  const told = execFileSync(process.env.SKIFF, ["test", join(folder, "case.suite.yaml")], { encoding: "utf8" });
  assert.match(told, /1 case: 1 passed/);
  await page.keyboard.press("Escape");
  assert.equal(await page.locator("#dialog").isVisible(), false);
});

test("a link holds all texts, and never sends them", async () => {
  const page = await playground({ permissions: ["clipboard-read", "clipboard-write"] });
  await type(page, "definition", DEFINITION);
  await type(page, "object", `${LONG}# ${"é"}`);
  await page.click("#link");
  await page.waitForFunction(() => location.hash.startsWith("#z="));
  const link = page.url();
  const other = await newPage();
  const requested = [];
  other.on("request", (request) => requested.push(request.url()));
  await other.goto(link);
  await shown(other);
  assert.match(await verdict(other), /^Created/);
  assert.match(await other.locator("#object .cm-content").innerText(), /# é/);
  const fragment = new URL(link).hash.slice(1);
  assert.ok(requested.every((it) => !new URL(it).pathname.includes(fragment) && new URL(it).search === ""));
  await other.goto(`${url}#z=AAAA`);
  await other.goto(`${url}#j=%`);
  assert.deepEqual(other.faults, []);
});

test("versions of Kubernetes are compared, and the link holds them", async () => {
  const page = await playground();
  await type(page, "definition", DEFINITION.replace("self.length >= 9", "isIP(self.rig) || self.length >= 9"));
  await type(page, "object", LONG);
  assert.equal(await page.locator("#versions").isVisible(), false);
  await page.fill("#minors", "1.30-1.32");
  await page.waitForFunction(() => !document.querySelector("#versions").hidden);
  assert.deepEqual(await page.locator("#versions tbody th").allTextContents(), ["1.30", "1.31", "1.32"]);
  assert.match(await page.locator("#versions").textContent(), /1\.30.*undeclared reference to 'isIP'.*fine from 1\.31 on/s);
  assert.deepEqual(await axe(page), []);
  await page.click("#link");
  await page.waitForFunction(() => location.hash.startsWith("#z="));
  const other = await newPage();
  await other.goto(page.url());
  await shown(other);
  assert.equal(await other.inputValue("#minors"), "1.30-1.32");
  await page.fill("#minors", "1.2");
  await page.waitForFunction(() => document.querySelector("#minors").getAttribute("aria-invalid") === "true");
  await page.fill("#minors", "");
  await page.waitForFunction(() => document.querySelector("#versions").hidden);
});

test("the user has a form, and policies show the values of their parts", async () => {
  const page = await playground();
  await page.selectOption("#examples", { label: "A policy, its parameters, and a user" });
  await shown(page);
  await page.click("#tab-request");
  const before = await page.inputValue("#user");
  assert.match(await page.locator("#request .cm-content").innerText(), new RegExp(`name: ${before}`));
  await page.fill("#user", "someone");
  await page.fill("#groups", "one, two");
  await page.press("#groups", "Tab");
  await page.waitForFunction(() => /- one\s+- two/.test(document.querySelector("#request .cm-content").innerText));
  assert.match(await page.locator("#request .cm-content").innerText(), /name: someone/);
  assert.ok((await page.locator("#policies .values tr").count()) > 0);
  assert.deepEqual(await axe(page), []);
});

test("the parameters of policies have a form", async () => {
  const page = await playground();
  await page.selectOption("#examples", { label: "A policy, its parameters, and a user" });
  await shown(page);
  await page.click("#tab-request");
  assert.equal(await page.getByLabel("data.longest").inputValue(), "30");
  assert.match(await page.locator("#params legend").innerText(), /ConfigMap default\/harbour/);
  assert.deepEqual(await axe(page), []);
  await page.getByLabel("data.longest").fill("3");
  await page.getByLabel("data.longest").press("Tab");
  await page.waitForFunction(() => /longest: "3"/.test(document.querySelector("#request .cm-content").innerText));
  await page.waitForFunction(() => /up to 3 metres/.test(document.querySelector(".errors")?.textContent));
  assert.match(await verdict(page), /^Refused/);
  await page.getByLabel("data.longest").fill("");
  await page.getByLabel("data.longest").press("Enter");
  await page.waitForFunction(() => !/longest/.test(document.querySelector("#request .cm-content").innerText));
  await type(page, "request", "");
  assert.equal(await page.getByLabel("data.longest").inputValue(), "");
  await page.getByLabel("data.longest").fill("95");
  await page.getByLabel("data.longest").press("Tab");
  await page.waitForFunction(() => /longest: "95"/.test(document.querySelector("#request .cm-content").innerText));
  // What is shown may still be of the text before: each field writes the text anew.
  await page.waitForFunction(() => /^(Created|Updated)/.test(document.querySelector("#verdict-head").textContent));
  await type(page, "definition", DEFINITION);
  assert.equal(await page.locator("#params").isVisible(), false);
  assert.deepEqual(page.faults, []);
});

test("the keyboard alone is enough", async () => {
  const page = await playground();
  const focused = () => page.evaluate(() => document.activeElement.id || document.activeElement.className || document.activeElement.tagName);
  await page.keyboard.press("Tab");
  assert.equal(await focused(), "skip");
  const order = [];
  for (let at = 0; at < 7; at++) {
    await page.keyboard.press("Tab");
    order.push(await focused());
  }
  assert.deepEqual(order.slice(0, 4), ["minors", "examples", "link", "case"]);
  assert.match(order[4], /cm-content/);
  assert.equal(order[5], "tab-object");
  assert.match(order[6], /cm-content/);
  await page.keyboard.press("ControlOrMeta+a");
  await page.keyboard.insertText("kind: Nothing");
  await page.waitForFunction(() => document.querySelector("#verdict-head").textContent.startsWith("Nothing defines"));
  await page.keyboard.press("Shift+Tab");
  await page.keyboard.press("ArrowRight");
  assert.equal(await focused(), "tab-old");
  assert.ok(await page.locator("#panel-old").isVisible());
  await page.keyboard.press("End");
  assert.equal(await focused(), "tab-request");
  await page.focus("#examples");
  await page.keyboard.press("Home");
  await page.keyboard.press("ArrowDown");
  await page.waitForFunction(() => document.querySelector("#verdict-head").textContent.startsWith("Refused"));
  await page.focus(".errors button.line");
  await page.keyboard.press("Enter");
  assert.match(await focused(), /cm-content/);
  await page.focus("#case");
  await page.keyboard.press("Enter");
  await page.waitForSelector("#dialog[open]");
  await page.keyboard.press("Escape");
  assert.equal(await focused(), "case");
});

test("the page has the structure that is expected", async () => {
  const page = await playground();
  await type(page, "definition", DEFINITION);
  await type(page, "object", BOAT);
  const found = `${await page.locator("body").ariaSnapshot()}\n`.replace(/skiff \d+\.\d+\.\d+/, "skiff VERSION");
  const file = new URL("./structure.yaml", import.meta.url);
  if (process.env.SKIFF_UPDATE) writeFileSync(file, found);
  assert.equal(found, readFileSync(file, "utf8"));
});

for (const [width, beside] of [[1280, true], [480, false]]) {
  for (const colorScheme of ["light", "dark"]) {
    test(`a screenshot shows where things are: ${width} wide, ${colorScheme}`, async () => {
      const page = await playground({ colorScheme, viewport: { width, height: 900 } });
      await type(page, "definition", DEFINITION);
      await type(page, "object", BOAT);
      const names = ["header", "#definition", "#object", "#verdict", "#rules", "#object-after", "#findings", "footer"];
      const parts = await layout(page, names);
      const by = Object.fromEntries(parts.map((part) => [part.name, part]));
      for (const { name, box, ink } of parts) {
        assert.ok(box.x >= 0 && box.x + box.width <= width + 1, `${name} is within the page`);
        assert.ok(ink > 0.002 && ink < 0.6, `${name} shows something: ${ink}`);
      }
      const isBelow = (one, other) => one.box.y >= other.box.y + other.box.height - 1;
      const isRight = (one, other) => one.box.x >= other.box.x + other.box.width - 1;
      assert.ok(beside ? isRight(by["#object"], by["#definition"]) : isBelow(by["#object"], by["#definition"]), "the object");
      assert.ok(beside ? isRight(by["#object-after"], by["#rules"]) : isBelow(by["#object-after"], by["#rules"]), "what becomes of it");
      for (const [upper, lower] of [["header", "#definition"], ["#object", "#verdict"], ["#verdict", "#rules"], ["#object-after", "#findings"], ["#findings", "footer"]]) {
        assert.ok(isBelow(by[lower], by[upper]), `${lower} is below ${upper}`);
      }
      // The verdict is coloured, and what is around it is as dark as was asked for.
      const { background, coloured } = await colours(page, "#verdict");
      assert.equal(background < 128, colorScheme === "dark", String(background));
      assert.ok(coloured > 0.001, String(coloured));
    });
  }
}

test("axe finds nothing serious in any view, in light and dark, wide and narrow", async () => {
  for (const colorScheme of ["light", "dark"]) {
    const page = await playground({ colorScheme, viewport: { width: colorScheme === "dark" ? 480 : 1280, height: 900 } });
    assert.deepEqual(await axe(page), [], colorScheme);
    for (const tab of ["old", "request", "object"]) {
      await page.click(`#tab-${tab}`);
      assert.deepEqual(await axe(page), [], `${colorScheme} ${tab}`);
    }
    await page.selectOption("#examples", { label: "A policy, its parameters, and a user" });
    await page.locator("#policies").waitFor();
    await page.evaluate(() => document.querySelectorAll("details").forEach((it) => { it.open = true; }));
    assert.deepEqual(await axe(page), [], `${colorScheme} policies`);
    await page.click("#case");
    await page.waitForSelector("#dialog[open]");
    assert.deepEqual(await axe(page), [], colorScheme);
  }
});

test("the page runs nothing but its own script", async () => {
  const page = await playground();
  await type(page, "object", "kind: <img src=x onerror=globalThis.broken=1>\napiVersion: <script>broken=1</script>\n");
  assert.match(await verdict(page), /<img/);
  await page.evaluate(() => {
    const script = document.createElement("script");
    script.textContent = "globalThis.broken = 1";
    document.body.append(script);
    document.body.insertAdjacentHTML("beforeend", "<img src=/none onerror='globalThis.broken = 1'>");
  });
  await page.waitForTimeout(100);
  assert.equal(await page.evaluate(() => globalThis.broken), undefined);
});
