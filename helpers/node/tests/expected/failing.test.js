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
