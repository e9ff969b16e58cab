// What is printed of a test that fails, and what is left of one that is killed. For node:test.

import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';

import { CoreV1Api, KubeConfig } from '@kubernetes/client-node';
import { endShared, plane, program, start, withSkiff } from 'kubeskiff';

test('a test with a control plane', withSkiff(async ({ skiff }) => {
  assert.ok(existsSync(skiff.kubeconfig));
}));

test('nothing is left at the end', async () => {
  const skiff = await start();
  await skiff.stop();
  assert.ok(!existsSync(path.dirname(skiff.kubeconfig)));
  await skiff.stop();
});

test('a server that does not start says why', async () => {
  await assert.rejects(start({ crds: ['nowhere'] }), /skiff did not start: .*nowhere/s);
});

test('a program that is not there is named', () => {
  const given = process.env.SKIFF;
  process.env.SKIFF = '/nowhere/skiff';
  assert.throws(program, /\/nowhere\/skiff/);
  given === undefined ? delete process.env.SKIFF : (process.env.SKIFF = given);
});

test('a failed test is told what its server was asked', async (context) => {
  const told = context.mock.method(console, 'error', () => {});
  const body = withSkiff(async ({ skiff }, row) => {
    await ask(skiff);
    throw new Error(`row ${row}`);
  });
  await assert.rejects(body(3), /row 3/);
  assert.match(told.mock.calls[0].arguments[0], /skiff: https:.* was asked\n[^]*get \/api\/v1\/namespaces\/default\/configmaps\/asked 404/);
});

test('a server that tests share ends when nobody uses it', async () => {
  const first = await plane();
  const folder = path.dirname(first.kubeconfig);
  await first.stop();
  const second = await plane();
  assert.equal(path.dirname(second.kubeconfig), folder);
  await endShared();
  assert.ok(existsSync(folder), 'one is in use');
  await second.stop();
  await second.stop();
  await untilGone(folder);
  const third = await plane();
  assert.notEqual(path.dirname(third.kubeconfig), folder);
  await third.stop();
  await endShared();
  assert.ok(!existsSync(path.dirname(third.kubeconfig)));
});

test('a process is not kept by a control plane that nobody stops', () => {
  const code = "import { start } from 'kubeskiff'; await start();";
  const ended = spawnSync(process.execPath, ['--input-type=module', '-e', code], { cwd: import.meta.dirname, timeout: 60_000 });
  assert.equal(ended.status, 0, String(ended.stderr));
});

test('nothing is left after a kill', async () => {
  const code = "import { start } from 'kubeskiff'; console.log((await start()).kubeconfig); setInterval(() => {}, 1000);";
  const killed = spawn(process.execPath, ['--input-type=module', '-e', code], { cwd: import.meta.dirname });
  const [kubeconfig] = await new Promise((resolve) => killed.stdout.once('data', (text) => resolve(String(text).split('\n'))));
  assert.ok(existsSync(kubeconfig));
  killed.kill('SIGKILL');
  // The server removes its folder last.
  await untilGone(path.dirname(kubeconfig));
});

async function untilGone(folder) {
  for (let tries = 0; existsSync(folder); tries += 1) {
    assert.ok(tries < 1000, `${folder} is there`);
    await sleep(50);
  }
}

/** A request for what is not there. */
async function ask(skiff) {
  const core = skiff.load(new KubeConfig()).makeApiClient(CoreV1Api);
  await assert.rejects(core.readNamespacedConfigMap({ namespace: 'default', name: 'asked' }));
  // A line is told behind its answer.
  while (!skiff.log.some((line) => line.includes('/asked'))) {
    await sleep(5);
  }
}
