// Makes the page: one script, one style sheet, and the licences of what is in them. The same input gives the same bytes.
//
//   node build.js [FOLDER]    (default: dist)

import { build } from "esbuild";
import { copyFile, mkdir, readFile, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";

const root = import.meta.dirname;
const folder = resolve(process.argv[2] ?? join(root, "dist"));

const options = { bundle: true, minify: true, metafile: true, legalComments: "none", charset: "utf8", absWorkingDir: root };
await mkdir(folder, { recursive: true });
const script = await build({
  ...options,
  entryPoints: ["src/main.js"],
  outfile: join(folder, "page.js"),
  format: "esm",
  target: ["chrome111", "firefox114", "safari16.4"],
});
await build({ ...options, entryPoints: ["src/page.css"], outfile: join(folder, "page.css"), target: ["chrome111", "firefox114", "safari16.4"] });
for (const file of ["index.html", "icon.svg"]) await copyFile(join(root, "src", file), join(folder, file));
await writeFile(join(folder, "third-party.txt"), await notices(Object.keys(script.metafile.inputs)));

/** The licence of each package that some file of the script is from. */
async function notices(inputs) {
  const names = inputs.map((input) => input.match(/^node_modules\/((?:@[^/]+\/)?[^/]+)\//)?.[1]).filter(Boolean);
  const parts = ["The page of skiff playground contains the following software.\n"];
  for (const name of [...new Set(names)].sort()) {
    const home = join(root, "node_modules", name);
    const { version, license } = JSON.parse(await readFile(join(home, "package.json"), "utf8"));
    const text = await readFile(join(home, "LICENSE"), "utf8");
    parts.push(`${"=".repeat(78)}\n${name} ${version} (${license})\n\n${text.trim()}\n`);
  }
  return parts.join("\n");
}
