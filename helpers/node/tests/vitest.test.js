// The fixtures for vitest, with @kubernetes/client-node.

import { existsSync } from 'node:fs';

import { CoreV1Api, KubeConfig, KubernetesObjectApi } from '@kubernetes/client-node';
import { test } from 'kubeskiff/vitest';
import { describe, expect } from 'vitest';

test('a control plane is there, and its own', async ({ skiff, skiffSession }) => {
  expect(existsSync(skiff.kubeconfig)).toBe(true);
  expect(skiff.url).not.toBe(skiffSession.url);
  expect(skiff.environment).toEqual({ KUBECONFIG: skiff.kubeconfig });
});

test('what it was asked is known', async ({ skiff }) => {
  const core = skiff.load(new KubeConfig()).makeApiClient(CoreV1Api);
  await expect(core.readNamespacedConfigMap({ namespace: 'default', name: 'none' })).rejects.toThrow();
  await expect.poll(() => skiff.log.join('\n')).toContain('get /api/v1/namespaces/default/configmaps/none 404');
});

describe('with definitions', () => {
  test.override({ skiffOptions: { crds: [process.env.SKIFF_DEFINITIONS] } });

  test('they are served from the start', async ({ skiff }) => {
    const objects = KubernetesObjectApi.makeApiClient(skiff.load(new KubeConfig()));
    const releases = await objects.list('rules.example.com/v1', 'Release');
    expect(releases.items).toEqual([]);
  });
});

describe.concurrent('a hundred tests', () => {
  test.for(Array.from({ length: 100 }, (_, number) => number))('number %i sees its own objects alone', async (number, { skiff }) => {
    const core = skiff.load(new KubeConfig()).makeApiClient(CoreV1Api);
    const body = { metadata: { name: `settings-${number}` }, data: { number: String(number) } };
    await core.createNamespacedConfigMap({ namespace: 'default', body });
    const kept = await core.listNamespacedConfigMap({ namespace: 'default' });
    const names = kept.items.map((item) => item.metadata.name).filter((name) => name !== 'kube-root-ca.crt');
    expect(names).toEqual([`settings-${number}`]);
  });
});
