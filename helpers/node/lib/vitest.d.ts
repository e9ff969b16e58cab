import type { TestAPI } from 'vitest';

import type { ControlPlane, TestOptions } from './index.js';

/** What a test may ask for. */
export interface Fixtures {
  /** What the control planes are to have: `test.override({ skiffOptions: { crds: ['config/crd'] } })`. */
  skiffOptions: TestOptions;
  /** A control plane for this test alone. */
  skiff: ControlPlane;
  /** A copy for this test alone of one that is prepared once for all tests of a worker. */
  skiffFork: ControlPlane;
  /** What is prepared: `base.extend({ skiffPrepare: [{ prepare: async (plane) => { … } }, { scope: 'worker' }] })`. */
  skiffPrepare: { options?: TestOptions; prepare(plane: ControlPlane): unknown };
  /** The one that is prepared. */
  skiffPrepared: ControlPlane;
  /** A control plane for all tests of a worker. */
  skiffSession: ControlPlane;
}

/** vitest's `test` with control planes: `test('name', async ({ skiff }) => { … })`. */
export const test: TestAPI<Fixtures>;
export const it: typeof test;
