// What the programs beside this one share: the definition of Boat, boats, and the way to run checks.
//
// Every program is run as `node PROGRAM` with KUBECONFIG set. It prints a line per check and ends with an error at the
// first that fails.

import { readFileSync } from 'node:fs';
import { setTimeout } from 'node:timers/promises';

import { KubeConfig, KubernetesObjectApi, loadYaml } from '@kubernetes/client-node';

export const group = 'harbour.example.com';
export const version = 'v1';
export const namespace = 'default';
export const plural = 'boats';
export const boats = { group, version, namespace, plural };
export const path = `/apis/${group}/${version}/namespaces/${namespace}/${plural}`;

export const config = new KubeConfig();
config.loadFromDefault();

/** A Boat of 10 m, unless the spec says otherwise. */
export function boat(name, spec = {}) {
  return { apiVersion: `${group}/${version}`, kind: 'Boat', metadata: { name, namespace }, spec: { length: 10, ...spec } };
}

/** Registers Boat and waits until the server serves it. */
export async function register() {
  const api = KubernetesObjectApi.makeApiClient(config);
  const definition = loadYaml(readFileSync(new URL('../boats.yaml', import.meta.url), 'utf8'));
  await api.create(definition);
  await eventually('the definition is established', async () => {
    const { status } = await api.read(definition);
    return status?.conditions?.some(({ type, status }) => type === 'Established' && status === 'True');
  });
}

/** Waits until the condition holds. */
export async function eventually(what, condition, seconds = 20) {
  const deadline = Date.now() + seconds * 1000;
  while (!(await condition())) {
    if (Date.now() > deadline) throw new Error(`not within ${seconds} s: ${what}`);
    await setTimeout(20);
  }
}

/** Runs a check and prints what it shows. */
export async function check(what, body) {
  await body();
  console.log('ok:', what);
}
