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
  skiffFork: async ({ task, skiffPrepared }, use) => {
    const skiff = await skiffPrepared.fork();
    try {
      await use(skiff);
      if (task.result?.state === 'fail') {
        tell(skiff);
      }
    } finally {
      await skiff.stop();
    }
  },
  skiffPrepare: [{ prepare: async () => {} }, { scope: 'worker' }],
  skiffPrepared: [
    async ({ skiffPrepare }, use) => {
      const skiff = await start(skiffPrepare.options);
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
