// `withSkiff` for jest, in CommonJS.

const { existsSync, readFileSync } = require('node:fs');
const https = require('node:https');
const path = require('node:path');

const { start, withFork, withSkiff } = require('kubeskiff');

test('a control plane is there', withSkiff(async ({ skiff }) => {
  expect(existsSync(skiff.kubeconfig)).toBe(true);
}));

test.each([['a'], ['b']])('a table has its rows: %s', withSkiff(async ({ skiff }, row) => {
  expect(row).toMatch(/^[ab]$/);
  expect(skiff.url).toMatch(/^https:/);
}));

test('definitions are there from the start', withSkiff({ crds: [process.env.SKIFF_DEFINITIONS] }, async ({ skiff }) => {
  const { items } = await get(skiff, '/apis/apiextensions.k8s.io/v1/customresourcedefinitions');
  expect(items.map(({ metadata }) => metadata.name)).toEqual(['releases.rules.example.com']);
}));

const folders = [];
test.each([[{}], [{}], [{ arguments: ['--authorization-mode=RBAC'] }], [{ ownProcess: true }]])('a server for the options %j', async (options) => {
  await withSkiff(options, async ({ skiff }) => {
    folders.push(path.dirname(skiff.kubeconfig));
  })();
});

test('tests with the same options have one server', () => {
  expect(folders).toHaveLength(4);
  expect(folders[1]).toBe(folders[0]);
  expect(new Set(folders).size).toBe(3);
});

/** What is there, asked by the administrator. */
function get(skiff, url) {
  const text = readFileSync(skiff.kubeconfig, 'utf8');
  const part = (name) => Buffer.from(new RegExp(`${name}: (\\S+)`).exec(text)[1], 'base64');
  const tls = { ca: part('certificate-authority-data'), cert: part('client-certificate-data'), key: part('client-key-data') };
  return new Promise((resolve, reject) => {
    https.get(skiff.url + url, { ...tls, agent: false }, async (answer) => {
      resolve(JSON.parse((await answer.toArray()).join('')));
    }).on('error', reject);
  });
}

let prepared;
afterAll(async () => (await prepared)?.stop());

test.each([['a'], ['b']])('copies of a prepared control plane have faults: %s', withFork(() => (prepared ??= start()), async ({ skiff }, row) => {
  const fault = await skiff.inject({ match: { name: row }, error: 404 });
  expect(await fault.hits()).toBe(0);
  expect(skiff.url).not.toBe((await prepared).url);
}));
