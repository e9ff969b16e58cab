// The fixtures for vitest, with @kubernetes/client-node.

import { existsSync } from 'node:fs';
import path from 'node:path';

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

const folders = new Set();
test.for(['one', 'two'])('tests with the same options have one server: %s', (_, { skiff, skiffSession }) => {
  folders.add(path.dirname(skiff.kubeconfig)).add(path.dirname(skiffSession.kubeconfig));
  expect(folders.size).toBe(1);
});

describe('a server for a test', () => {
  test.override({ skiffOptions: { ownProcess: true } });

  test('is another one', ({ skiff, skiffSession }) => {
    expect(path.dirname(skiff.kubeconfig)).not.toBe(path.dirname(skiffSession.kubeconfig));
  });
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
  // helpers/measure sets the variable.
  test.override({ skiffOptions: { ownProcess: 'SKIFF_TEST_OWN_PROCESS' in process.env } });

  test.for(Array.from({ length: 100 }, (_, number) => number))('number %i sees its own objects alone', async (number, { skiff }) => {
    const core = skiff.load(new KubeConfig()).makeApiClient(CoreV1Api);
    const body = { metadata: { name: `settings-${number}` }, data: { number: String(number) } };
    await core.createNamespacedConfigMap({ namespace: 'default', body });
    const kept = await core.listNamespacedConfigMap({ namespace: 'default' });
    const names = kept.items.map((item) => item.metadata.name).filter((name) => name !== 'kube-root-ca.crt');
    expect(names).toEqual([`settings-${number}`]);
  });
});

const forked = test.extend({
  skiffPrepare: [
    {
      prepare: async (plane) => {
        const core = plane.load(new KubeConfig()).makeApiClient(CoreV1Api);
        await core.createNamespacedConfigMap({ namespace: 'default', body: { metadata: { name: 'prepared' } } });
      },
    },
    { scope: 'worker' },
  ],
});

describe.concurrent('a hundred copies of a prepared control plane', () => {
  forked.for(Array.from({ length: 100 }, (_, number) => number))('copy %i has a fault and a clock of its own', async (number, { skiffFork }) => {
    const core = skiffFork.load(new KubeConfig()).makeApiClient(CoreV1Api);
    await skiffFork.clock.set(new Date(Date.UTC(2030 + number, 0, 1)));
    const fault = await skiffFork.inject({ match: { verbs: ['create'], resource: 'configmaps' }, error: 403, times: 1 });
    const body = { metadata: { name: `settings-${number}` } };
    await expect(core.createNamespacedConfigMap({ namespace: 'default', body })).rejects.toThrow(/is forbidden/);
    const made = await core.createNamespacedConfigMap({ namespace: 'default', body });
    expect(made.metadata.creationTimestamp.getUTCFullYear()).toBe(2030 + number);
    expect(await fault.hits()).toBe(1);
    const kept = await core.listNamespacedConfigMap({ namespace: 'default' });
    const names = kept.items.map((item) => item.metadata.name).filter((name) => name !== 'kube-root-ca.crt');
    expect(names).toEqual(['prepared', `settings-${number}`]);
  });
});

test('a copy of a copy knows what it was asked', async ({ skiff }) => {
  const fork = await skiff.fork();
  const second = await fork.fork();
  const core = second.load(new KubeConfig()).makeApiClient(CoreV1Api);
  await expect(core.readNamespacedConfigMap({ namespace: 'default', name: 'none' })).rejects.toThrow();
  await expect.poll(() => second.log.join('\n')).toContain('get /api/v1/namespaces/default/configmaps/none 404');
  expect(fork.log.join('\n')).not.toContain('none');
  await second.stop();
  await fork.stop();
  await fork.stop();
  expect(existsSync(fork.kubeconfig)).toBe(false);
});

test('a copy has controllers and nodes of its own', async ({ skiff }) => {
  const large = await skiff.fork({ profile: 'cluster', controllers: ['*', '-cronjob'], simulateNodes: '1,cpu=4' });
  const nodes = (plane) => plane.load(new KubeConfig()).makeApiClient(CoreV1Api).listNode();
  await expect.poll(async () => (await nodes(large)).items.map((node) => node.status.capacity.cpu)).toEqual(['4']);
  const other = await skiff.fork();
  expect((await nodes(other)).items).toEqual([]);
  await expect(skiff.fork({ controllers: ['nonsense'] })).rejects.toThrow(/nonsense/);
});

test('a clock is frozen, moved and reset', async ({ skiff }) => {
  const { clock } = skiff;
  const begin = new Date('2031-02-03T04:05:06Z');
  await clock.freeze();
  await clock.set(begin);
  await clock.advance('1h30m');
  expect((await clock.now()).getTime()).toBe(begin.getTime() + 90 * 60_000);
  await clock.run();
  await clock.reset();
  expect(Math.abs((await clock.now()).getTime() - Date.now())).toBeLessThan(60_000);
});

test.for([
  {
    match: { verbs: ['watch'], group: '', resource: 'pods', namespace: 'a', name: 'b', user: 'c', path: '/api/*' },
    watch: { end: 'expired', afterEvents: 3, after: 0 },
  },
  { watch: 'closed' },
  { watch: { end: 'cut', after: '1m30s' } },
  { watch: 'stalled' },
  { match: { subresource: 'status' }, error: { code: 429, message: 'slow down', retryAfterSeconds: 3 }, delay: 1 },
  { error: { code: 410, reason: 'Gone' }, skip: 1, times: 2 },
  { error: 404 },
  { lose: 'answer', probability: 0.5, seed: 7 },
  { lose: 'request' },
  { delay: '250ms' },
  { stale: 5 },
  { conflict: true },
])('faults say all that the server takes: %j', async (fault, { skiff }) => {
  const injected = await skiff.inject(fault);
  expect(await injected.hits()).toBe(0);
  await injected.remove();
});

test('a fault is removed, and one that makes no sense refused', async ({ skiff }) => {
  const fault = await skiff.inject({ delay: 1, watch: undefined });
  await fault.remove();
  await fault.remove();
  await expect(skiff.inject({ stale: 2, conflict: true })).rejects.toThrow('a fault does one thing, not stale and conflict');
});
