// A test that fails: what is printed then is looked at by ../process.test.js.

import { CoreV1Api, KubeConfig } from '@kubernetes/client-node';
import { test } from 'kubeskiff/vitest';
import { expect } from 'vitest';

test('fails', async ({ skiff }) => {
  const core = skiff.load(new KubeConfig()).makeApiClient(CoreV1Api);
  await core.readNamespacedConfigMap({ namespace: 'default', name: 'asked' }).catch(() => {});
  await expect.poll(() => skiff.log.join()).toContain('/asked');
  expect(1).toBe(2);
});

test('fails with a copy', async ({ skiffFork, skiffPrepared }) => {
  const other = await skiffPrepared.fork();
  for (const [plane, name] of [[skiffPrepared, 'origin'], [other, 'other'], [skiffFork, 'own']]) {
    const core = plane.load(new KubeConfig()).makeApiClient(CoreV1Api);
    await core.readNamespacedConfigMap({ namespace: 'default', name }).catch(() => {});
    await expect.poll(() => plane.log.join()).toContain(`/${name}`);
  }
  expect(1).toBe(2);
});
