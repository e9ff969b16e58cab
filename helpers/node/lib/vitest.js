// Fixtures for vitest. See vitest.d.ts.

import { test as base } from 'vitest';

import { start, tell } from './index.js';

export const test = base.extend({
  skiffOptions: {},
  skiff: async ({ task, skiffOptions }, use) => {
    const skiff = await start(skiffOptions);
    try {
      await use(skiff);
      if (task.result?.state === 'fail') {
        tell(skiff);
      }
    } finally {
      await skiff.stop();
    }
  },
  skiffSession: [
    async ({}, use) => {
      const skiff = await start();
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
