// The typed, the custom and the generic API of @kubernetes/client-node: objects, patches, errors and pages.

import assert from 'node:assert/strict';

import {
  ApiextensionsV1Api,
  CoreV1Api,
  CustomObjectsApi,
  KubernetesObjectApi,
  PatchStrategy,
  setHeaderOptions,
} from '@kubernetes/client-node';

import { boat, boats, check, config, eventually, namespace, register } from './harbour.js';

const core = config.makeApiClient(CoreV1Api);
const definitions = config.makeApiClient(ApiextensionsV1Api);
const custom = config.makeApiClient(CustomObjectsApi);
const any = KubernetesObjectApi.makeApiClient(config);

/** Awaits a call that the server must refuse with that HTTP status; returns the Status object of the answer. */
async function refused(code, call) {
  const error = await call.then(
    () => assert.fail('it was not refused'),
    (error) => error,
  );
  assert.equal(error.code, code, error);
  return JSON.parse(error.body);
}

const strategy = (type) => setHeaderOptions('Content-Type', type);

await check('CoreV1Api writes and reads a ConfigMap, and a stale one is a conflict', async () => {
  const created = await core.createNamespacedConfigMap({
    namespace,
    body: { metadata: { generateName: 'tide-' }, data: { high: '6:10' } },
  });
  const { name } = created.metadata;
  await core.replaceNamespacedConfigMap({ namespace, name, body: { ...created, data: { high: '6:40' } } });
  const status = await refused(409, core.replaceNamespacedConfigMap({ namespace, name, body: created }));
  assert.equal(status.reason, 'Conflict');
  const patched = await core.patchNamespacedConfigMap(
    { namespace, name, body: { data: { low: '12:20' } } },
    strategy(PatchStrategy.StrategicMergePatch),
  );
  assert.deepEqual(patched.data, { high: '6:40', low: '12:20' });
  await core.deleteNamespacedConfigMap({ namespace, name });
  assert.equal((await refused(404, core.readNamespacedConfigMap({ namespace, name }))).details.name, name);
});

await check('ApiextensionsV1Api reads a definition that was made from YAML', async () => {
  await register();
  const read = await definitions.readCustomResourceDefinition({ name: 'boats.harbour.example.com' });
  assert.equal(read.spec.versions[0].schema.openAPIV3Schema.properties.spec.properties.crew._default, 1);
  assert(read.metadata.creationTimestamp instanceof Date);
});

await check('CustomObjectsApi creates, replaces and reads an object, its status and its scale', async () => {
  const created = await custom.createNamespacedCustomObject({ ...boats, body: boat('heron') });
  assert.deepEqual(created.spec, { length: 10, crew: 1, rig: 'none' });
  const named = { ...boats, name: 'heron' };
  await custom.replaceNamespacedCustomObject({ ...named, body: { ...created, spec: { length: 12, crew: 2 } } });
  const merge = strategy(PatchStrategy.MergePatch);
  await custom.patchNamespacedCustomObjectStatus({ ...named, body: { status: { crew: 2 } } }, merge);
  await custom.patchNamespacedCustomObjectScale({ ...named, body: { spec: { replicas: 3 } } }, merge);
  const read = await custom.getNamespacedCustomObject(named);
  assert.deepEqual([read.spec.crew, read.status.crew, read.metadata.generation], [3, 2, 3]);
});

await check('CustomObjectsApi sends patches of every kind that custom objects take', async () => {
  const patch = (type, body, options = {}) =>
    custom.patchNamespacedCustomObject({ ...boats, name: 'heron', body, ...options }, strategy(type));
  const operations = [{ op: 'replace', path: '/spec/crew', value: 4 }];
  assert.equal((await patch(PatchStrategy.JsonPatch, operations)).spec.crew, 4);
  assert.equal((await patch(PatchStrategy.MergePatch, { spec: { crew: null } })).spec.crew, 1);
  const applied = { ...boat('heron'), spec: { rig: 'sloop', length: 12 } };
  const apply = { fieldManager: 'builder', force: true };
  assert.equal((await patch(PatchStrategy.ServerSideApply, applied, apply)).spec.rig, 'sloop');
  assert.equal((await refused(415, patch(PatchStrategy.StrategicMergePatch, {}))).reason, 'UnsupportedMediaType');
});

await check('KubernetesObjectApi finds where any kind is served', async () => {
  const swan = await any.create(boat('swan'));
  swan.spec.crew = 2;
  assert.equal((await any.replace(swan)).spec.crew, 2);
  const change = { ...boat('swan'), spec: { rig: 'ketch' } };
  const merge = PatchStrategy.MergePatch;
  assert.equal((await any.patch(change, undefined, undefined, undefined, undefined, merge)).spec.rig, 'ketch');
  const apply = PatchStrategy.ServerSideApply;
  const sails = { ...boat('swan'), spec: { length: 10, sails: [{ name: 'jib', area: 9 }] } };
  assert.equal((await any.patch(sails, undefined, undefined, 'sailmaker', true, apply)).spec.sails[0].name, 'jib');
  const ketches = await any.list('harbour.example.com/v1', 'Boat', namespace, undefined, undefined, undefined, 'spec.rig=ketch');
  assert.deepEqual(ketches.items.map((item) => item.metadata.name), ['swan']);
  await any.delete(boat('swan'));
  assert.equal((await refused(404, any.read(boat('swan')))).reason, 'NotFound');
});

await check('an error holds the Status of the server, with a cause per field', async () => {
  const body = boat('whale', { length: 61, rig: 'mast' });
  const status = await refused(422, custom.createNamespacedCustomObject({ ...boats, body }));
  const fields = status.details.causes.map((cause) => cause.field);
  assert(fields.includes('spec.length') && fields.includes('spec.rig'), status.message);
  const twice = custom.createNamespacedCustomObject({ ...boats, body: boat('heron') });
  assert.equal((await refused(409, twice)).reason, 'AlreadyExists');
  const strict = { ...boats, body: boat('otter', { colour: 'red' }), fieldValidation: 'Strict' };
  const unknown = await refused(400, custom.createNamespacedCustomObject(strict));
  assert.match(unknown.message, /unknown field "spec.colour"/);
  const dry = await custom.createNamespacedCustomObject({ ...boats, body: boat('ghost'), dryRun: 'All' });
  assert.equal(dry.spec.crew, 1);
  await refused(404, custom.getNamespacedCustomObject({ ...boats, name: 'ghost' }));
});

await check('lists come in pages of one revision', async () => {
  for (let number = 0; number < 5; number += 1) await any.create(boat(`page-${number}`));
  const names = [];
  const revisions = new Set();
  let token;
  do {
    const page = await custom.listNamespacedCustomObject({ ...boats, limit: 2, _continue: token });
    names.push(...page.items.map((item) => item.metadata.name));
    revisions.add(page.metadata.resourceVersion);
    token = page.metadata.continue;
  } while (token);
  assert.deepEqual(names, ['heron', 'page-0', 'page-1', 'page-2', 'page-3', 'page-4']);
  assert.equal(revisions.size, 1);
});

await check('a deleted definition takes its objects along', async () => {
  await definitions.deleteCustomResourceDefinition({ name: 'boats.harbour.example.com' });
  await eventually('it is gone', async () => (await definitions.listCustomResourceDefinition()).items.length === 0);
});
