#!/usr/bin/env node
// Runs the program in the package for this machine: `npx skiff`.

import { spawn } from 'node:child_process';
import { constants } from 'node:os';

import { program } from '../lib/index.js';

let skiff;
try {
  skiff = spawn(program(), process.argv.slice(2), { stdio: 'inherit' });
} catch (error) {
  console.error(`skiff: ${error.message}`);
  process.exit(2);
}
skiff.once('error', (error) => {
  console.error(`skiff: ${error.message}`);
  process.exit(2);
});
// What this one is told is for the other; it ends as the other does.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
  process.on(signal, () => skiff.kill(signal));
}
skiff.once('exit', (code, signal) => process.exit(code ?? 128 + constants.signals[signal]));
