// Fixtures for vitest. See vitest.d.ts.

import { test as base } from 'vitest';

import { endShared, plane, tell } from './index.js';

/** Lets a test use a control plane, which is told if it fails. */
async function during(task, skiff, use) {
  try {
    await use(skiff);
    if (task.result?.state === 'fail') {
      tell(skiff);
    }
  } finally {
    await skiff.stop();
  }
}

export const test = base.extend({
  skiffServers: [
    async ({}, use) => {
      await use();
      await endShared();
    },
    { scope: 'worker' },
  ],
  skiffOptions: {},
  skiff: async ({ task, skiffOptions, skiffServers: _ }, use) => {
    await during(task, await plane(skiffOptions), use);
  },
  skiffFork: async ({ task, skiffPrepared }, use) => {
    await during(task, await skiffPrepared.fork(), use);
  },
  skiffPrepare: [{ prepare: async () => {} }, { scope: 'worker' }],
  skiffPrepared: [
    async ({ skiffPrepare, skiffServers: _ }, use) => {
      const skiff = await plane(skiffPrepare.options);
      try {
        await skiffPrepare.prepare(skiff);
        await use(skiff);
      } finally {
        await skiff.stop();
      }
    },
    { scope: 'worker' },
  ],
  skiffSession: [
    async ({ skiffServers: _ }, use) => {
      const skiff = await plane();
      try {
        await use(skiff);
      } finally {
        await skiff.stop();
      }
    },
    { scope: 'worker' },
  ],
});

export const it = test;
