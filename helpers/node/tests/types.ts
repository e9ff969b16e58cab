// Nothing that runs: tsc checks that the types say what the tests do, and nothing else.

import { CoreV1Api, KubeConfig } from '@kubernetes/client-node';
import { endShared, plane, program, start, tell, withFork, withSkiff } from 'kubeskiff';
import type { ControlPlane, Fault, Options } from 'kubeskiff';
import { test } from 'kubeskiff/vitest';

test('fixtures', async ({ skiff, skiffFork, skiffSession }) => {
  const core: CoreV1Api = skiff.load(new KubeConfig()).makeApiClient(CoreV1Api);
  await core.listNamespace();
  const planes: ControlPlane[] = [skiffFork, skiffSession];
  planes.forEach((one) => tell(one));
});

export const forked = test.extend({
  skiffPrepare: [
    { prepare: async (one: ControlPlane) => one.clock.freeze(), options: { crds: [new URL('file:///config/crd')] } },
    { scope: 'worker' },
  ],
});

test.for([1, 2])('a table: %i', async (row, { skiff }) => {
  const hits: number = await (await skiff.inject({ match: { verbs: ['get'] }, error: 404, times: row })).hits();
  void hits;
});

const options: Options = { arguments: ['--profile=cluster'], environment: { SKIFF_LOG: 'info' } };

export const body: () => Promise<void> = withSkiff({ ...options, ownProcess: true }, async ({ skiff }) => {
  await using fault = await skiff.inject({ watch: { end: 'expired', afterEvents: 3, after: '1m30s' } });
  await fault.remove();
});
export const row: (name: string, size: number) => Promise<void> = withSkiff((_, name: string, size: number) => name + size);
export const copy = withFork(start, { profile: 'cluster', simulateNodes: '3' }, async ({ skiff }) => {
  const now: Date = await skiff.clock.now();
  await skiff.clock.set(now);
});

const faults: Fault[] = [{ lose: 'answer' }, { conflict: true }, { stale: 5 }, { delay: 250 }];
// @ts-expect-error a watch ends in one of four ways
faults.push({ watch: 'gone' });
// @ts-expect-error Kubernetes answers with no such code
faults.push({ error: 418 });
// @ts-expect-error an option that is not there
void start({ crd: ['config/crd'] });
// @ts-expect-error `start` always starts a process
void start({ ownProcess: true });

await using second = await plane({ ownProcess: false });
export const said: readonly string[] = [...second.log, program()];
await endShared();
