// Watches and informers of @kubernetes/client-node: from a revision, in time, and after history is gone.
//
// The server must have forgotten what happened up to revision 1, as one has whose snapshot was restored.

import assert from 'node:assert/strict';

import { CustomObjectsApi, ListWatch, PatchStrategy, Watch, makeInformer, setHeaderOptions } from '@kubernetes/client-node';

import { boat, boats, check, config, eventually, path, register } from './harbour.js';

const forgotten = '1';
const custom = config.makeApiClient(CustomObjectsApi);

const list = () => custom.listNamespacedCustomObject(boats);
const create = (name, spec) => custom.createNamespacedCustomObject({ ...boats, body: boat(name, spec) });
const remove = (name) => custom.deleteNamespacedCustomObject({ ...boats, name });
const merge = (name, spec) =>
  custom.patchNamespacedCustomObject(
    { ...boats, name, body: { spec } },
    setHeaderOptions('Content-Type', PatchStrategy.MergePatch),
  );

/** All that a watch tells until the server ends it: types, with names of objects or codes of errors. */
function watched(query) {
  const events = [];
  return new Promise((resolve, reject) => {
    const heard = (type, object) => events.push(`${type} ${object.code ?? object.metadata.name ?? ''}`.trim());
    const ended = (error) => (error ? reject(error) : resolve(events));
    new Watch(config).watch(path, { timeoutSeconds: 1, ...query }, heard, ended);
  });
}

/** Starts an informer; returns it, and the names of what it tells. */
async function start(informer) {
  const told = [];
  for (const event of ['add', 'update', 'delete']) informer.on(event, ({ metadata }) => told.push(`${event} ${metadata.name}`));
  informer.on('error', (error) => told.push(`error ${error}`));
  await informer.start();
  return told;
}

await check('a watch from a list gets every change after it, and ends in time', async () => {
  await register();
  await create('heron');
  const { resourceVersion } = (await list()).metadata;
  await create('swan');
  await merge('heron', { rig: 'sloop' });
  await merge('heron', { rig: 'none' });
  await remove('swan');
  const all = ['ADDED swan', 'MODIFIED heron', 'MODIFIED heron', 'DELETED swan'];
  assert.deepEqual(await watched({ resourceVersion }), all);
  // What leaves a selector is deleted for its watchers.
  const sloops = await watched({ resourceVersion, fieldSelector: 'spec.rig=sloop' });
  assert.deepEqual(sloops, ['ADDED heron', 'DELETED heron']);
});

await check('a watch streams the list first, closed by a bookmark', async () => {
  const query = { sendInitialEvents: true, allowWatchBookmarks: true, resourceVersionMatch: 'NotOlderThan' };
  const events = await watched(query);
  assert.deepEqual(events.slice(0, 2), ['ADDED heron', 'BOOKMARK']);
});

await check('a watch from a forgotten revision fails with 410', async () => {
  assert.deepEqual(await watched({ resourceVersion: forgotten }), ['ERROR 410']);
});

await check('an informer keeps a cache up to date', async () => {
  const informer = makeInformer(config, path, list);
  const told = await start(informer);
  await create('tern', { rig: 'ketch' });
  await merge('tern', { crew: 2 });
  await eventually('the cache has the new crew', () => informer.get('tern', 'default')?.spec.crew === 2);
  await remove('tern');
  await eventually('the cache forgets it', () => told.at(-1) === 'delete tern');
  assert.deepEqual(told, ['add heron', 'add tern', 'update tern', 'delete tern']);
  assert.deepEqual(informer.list().map((item) => item.metadata.name), ['heron']);
  await informer.stop();
});

await check('an informer lists anew when its revision has expired', async () => {
  let lists = 0;
  // The first list is as old as one can be.
  const listed = async () => {
    const answer = await list();
    lists += 1;
    if (lists === 1) answer.metadata.resourceVersion = forgotten;
    return answer;
  };
  const informer = new ListWatch(path, new Watch(config), listed, false);
  const told = await start(informer);
  await eventually('it lists again', () => lists === 2);
  await create('gull');
  await eventually('it goes on', () => told.includes('add gull'));
  assert.deepEqual(told, ['add heron', 'add gull']);
  await informer.stop();
});
