// A browser for the tests, and what they share.

import { readFileSync } from "node:fs";
import { chromium } from "playwright-core";

export const url = process.env.SKIFF_URL;
/** A name that is made to point at this machine, as a hostile name server would. */
export const REBOUND = "rebound.example.com";

let browser;
export async function start() {
  // Root may not make the sandbox in containers.
  const args = [`--host-resolver-rules=MAP ${REBOUND} 127.0.0.1`, ...(process.getuid() === 0 ? ["--no-sandbox"] : [])];
  browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args });
}
export const stop = () => browser.close();

/** A page in a profile of its own. What goes wrong on it is in `faults`. */
export async function newPage(options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, permissions: [], ...options });
  const page = await context.newPage();
  page.faults = [];
  page.on("pageerror", (error) => page.faults.push(error.message));
  page.on("console", (message) => message.type() === "error" && page.faults.push(message.text()));
  return page;
}

/** The playground with the first example, once its verdict is shown. */
export async function playground(options, fragment = "") {
  const page = await newPage(options);
  await page.goto(`${url}${fragment}`);
  await shown(page);
  return page;
}

export const shown = (page) => page.waitForSelector('body[data-state="shown"]');

/** Types a text in place of what an editor holds. */
export async function type(page, pane, text) {
  const editor = page.locator(`#${pane} .cm-content`);
  await editor.click();
  await page.keyboard.press("ControlOrMeta+a");
  // What a browser puts in place of a selection has the style of that, which the policy forbids, and the editor needs not.
  await page.keyboard.press("Backspace");
  await page.keyboard.insertText(text);
  await page.waitForFunction(() => document.body.dataset.state === "typing" || document.body.dataset.state === "shown");
  await page.waitForTimeout(200);
  await shown(page);
}

export const verdict = (page) => page.locator("#verdict-head").textContent();

/** What axe finds that is serious or worse. */
export async function axe(page) {
  const source = readFileSync(new URL("../node_modules/axe-core/axe.min.js", import.meta.url), "utf8");
  await page.evaluate(source);
  const { violations } = await page.evaluate(() => globalThis.axe.run());
  const isSerious = ({ impact }) => impact === "serious" || impact === "critical";
  return violations.filter(isSerious).map(({ id, nodes }) => `${id}: ${nodes.map(({ target, failureSummary }) => `${target} ${failureSummary}`).join("; ")}`);
}

/** The pixels of a screenshot of all of a page, as `measure(pixels, width)` sees them in a page of its own. */
async function measured(page, measure, argument) {
  const shot = (await page.screenshot({ fullPage: true, animations: "disabled", caret: "hide" })).toString("base64");
  const canvas = await browser.newPage();
  try {
    return await canvas.evaluate(async ([shot, measure, argument]) => {
      const image = await createImageBitmap(await (await fetch(`data:image/png;base64,${shot}`)).blob());
      const context = new OffscreenCanvas(image.width, image.height).getContext("2d");
      context.drawImage(image, 0, 0);
      return new Function("context", "argument", `return (${measure})(context, argument)`)(context, argument);
    }, [shot, measure.toString(), argument]);
  } finally {
    await canvas.close();
  }
}

const boxOf = (page, name) => page.locator(name).first().evaluate((element) => {
  const { x, y, width, height } = element.getBoundingClientRect();
  return { x: x + scrollX, y: y + scrollY, width, height };
});

/** Where elements are on a screenshot, and how much of each is not of its most frequent colour. */
export async function layout(page, names) {
  const boxes = await Promise.all(names.map(async (name) => ({ name, box: await boxOf(page, name) })));
  return measured(page, (context, boxes) => boxes.map(({ name, box }) => {
    const { data } = context.getImageData(box.x, box.y, Math.max(1, box.width), Math.max(1, box.height));
    const counts = new Map();
    for (let at = 0; at < data.length; at += 4) {
      const colour = (data[at] << 16) | (data[at + 1] << 8) | data[at + 2];
      counts.set(colour, (counts.get(colour) ?? 0) + 1);
    }
    return { name, box, ink: 1 - (4 * Math.max(...counts.values())) / data.length };
  }), boxes);
}

/** How light the most of a screenshot is, and how much of an element on it is neither grey nor nearly. */
export async function colours(page, name) {
  const box = await boxOf(page, name);
  return measured(page, (context, box) => {
    const all = context.getImageData(0, 0, context.canvas.width, context.canvas.height).data;
    let sum = 0;
    for (let at = 0; at < all.length; at += 4) sum += (all[at] + all[at + 1] + all[at + 2]) / 3;
    const { data } = context.getImageData(box.x, box.y, box.width, box.height);
    let coloured = 0;
    for (let at = 0; at < data.length; at += 4) coloured += Math.max(data[at], data[at + 1], data[at + 2]) - Math.min(data[at], data[at + 1], data[at + 2]) > 60;
    return { background: (4 * sum) / all.length, coloured: (4 * coloured) / data.length };
  }, box);
}
