// `withSkiff` for jest, in CommonJS.

const { existsSync } = require('node:fs');

const { start, withFork, withSkiff } = require('kubeskiff');

test('a control plane is there', withSkiff(async ({ skiff }) => {
  expect(existsSync(skiff.kubeconfig)).toBe(true);
}));

test.each([['a'], ['b']])('a table has its rows: %s', withSkiff(async ({ skiff }, row) => {
  expect(row).toMatch(/^[ab]$/);
  expect(skiff.url).toMatch(/^https:/);
}));

test('definitions are there from the start', withSkiff({ crds: [process.env.SKIFF_DEFINITIONS] }, async ({ skiff }) => {
  expect(skiff.log.join('\n')).toContain('applied 1 CustomResourceDefinition');
}));

let prepared;
afterAll(async () => (await prepared)?.stop());

test.each([['a'], ['b']])('copies of a prepared control plane have faults: %s', withFork(() => (prepared ??= start()), async ({ skiff }, row) => {
  const fault = await skiff.inject({ match: { name: row }, error: 404 });
  expect(await fault.hits()).toBe(0);
  expect(skiff.url).not.toBe((await prepared).url);
}));
