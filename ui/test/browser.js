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
