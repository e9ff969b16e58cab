// A control plane for a test: a server in memory, from its start to its end.

'use strict';

const { spawn } = require('node:child_process');
const { randomUUID } = require('node:crypto');
const { rm, writeFile } = require('node:fs/promises');
const { tmpdir } = require('node:os');
const path = require('node:path');
const { createInterface } = require('node:readline');

const { Api } = require('./api.cjs');
const { Clock } = require('./clock.cjs');
const { InjectedFault, inject } = require('./faults.cjs');
const { program } = require('./program.cjs');
const { endShared, shared } = require('./shared.cjs');

/** How many lines of what the server says are kept: the newest. */
const LINES_MAX = 10_000;
/** How long a server may take to end before it is killed. */
const STOP_MAX_MS = 10_000;
const PLANES = '/skiff/v1/planes';

/** A running control plane. See index.d.ts. */
class ControlPlane {
  #server;
  #said;
  #ended;
  #api;
  #folder;

  constructor(server, said, ended, url, kubeconfig) {
    this.#server = server;
    this.#said = said;
    this.#ended = ended;
    this.url = url;
    this.kubeconfig = kubeconfig;
    this.#folder = path.dirname(kubeconfig);
  }

  get environment() {
    return { KUBECONFIG: this.kubeconfig };
  }

  load(config) {
    config.loadFromFile(this.kubeconfig);
    return config;
  }

  get log() {
    return [...this.#said];
  }

  async inject(fault) {
    return inject(this.#asked(), fault);
  }

  get clock() {
    return new Clock(this.#asked());
  }

  async fork(workloads) {
    return this.forkOf('main', workloads);
  }

  /** A copy of the control plane that has this name in the process of this one. */
  async forkOf(from, { profile, controllers, simulateNodes } = {}) {
    const made = await this.#asked().send('POST', PLANES, { from, profile, controllers, simulateNodes });
    const kubeconfig = path.join(this.#folder, `${made.name}.kubeconfig`);
    await writeFile(kubeconfig, made.kubeconfig, { mode: 0o600 });
    return new Fork(this, made.name, made.url, kubeconfig);
  }

  /** Removes a copy, if it is still there. */
  async removeFork(name) {
    try {
      await this.#asked().send('DELETE', `${PLANES}/${name}`);
    } catch (error) {
      if (error.code !== 404) {
        throw error;
      }
    }
  }

  #asked() {
    this.#api ??= new Api(this.url, this.kubeconfig);
    return this.#api;
  }

  async stop() {
    const killed = setTimeout(() => this.#server.kill('SIGKILL'), STOP_MAX_MS);
    this.#server.kill('SIGTERM');
    await this.#ended;
    clearTimeout(killed);
    // One that is killed leaves it behind, and on Windows each is.
    await rm(this.#folder, { recursive: true, force: true });
  }

  async [Symbol.asyncDispose ?? Symbol.for('Symbol.asyncDispose')]() {
    await this.stop();
  }
}

/** A copy of a control plane, in the same process as the first one. */
class Fork extends ControlPlane {
  #first;
  #name;
  #written;

  constructor(first, name, url, kubeconfig) {
    super(undefined, undefined, undefined, url, kubeconfig);
    this.#first = first;
    this.#name = name;
    this.#written = kubeconfig;
  }

  get log() {
    const prefix = `[${this.#name}] `;
    return this.#first.log.filter((line) => line.startsWith(prefix)).map((line) => line.slice(prefix.length));
  }

  async fork(workloads) {
    return this.#first.forkOf(this.#name, workloads);
  }

  async stop() {
    await rm(this.#written, { force: true });
    await this.#first.removeFork(this.#name);
  }
}

/** A control plane for a test: in a server that tests share, unless it is to have its own. */
async function plane({ ownProcess = false, ...options } = {}) {
  return ownProcess ? start(options) : shared(options, start);
}

async function start(options = {}) {
  const folder = path.join(tmpdir(), `skiff-${randomUUID()}`);
  const fixed = ['serve', `--temporary=${process.pid}`, '--listen', '127.0.0.1:0', '--store', 'memory', '--data-dir', folder];
  const crds = (options.crds ?? []).flatMap((crd) => ['--crds', String(crd)]);
  const server = spawn(program(), [...fixed, ...crds, ...(options.arguments ?? [])], {
    env: { ...process.env, SKIFF_TRACE: 'requests', ...options.environment },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const said = [];
  createInterface({ input: server.stderr }).on('line', (line) => {
    said.push(line);
    if (said.length > LINES_MAX) {
      said.shift();
    }
  });
  // With all that it said.
  const ended = new Promise((resolve) => server.once('close', resolve));
  const line = await firstLine(server);
  if (!line.startsWith('ready ')) {
    server.kill('SIGKILL');
    await ended;
    throw new Error(`skiff did not start: ${said.join('\n')}`);
  }
  // A control plane that nobody stops does not keep this process: it ends with it.
  for (const part of [server, server.stdout, server.stderr]) {
    part.unref();
  }
  return new ControlPlane(server, said, ended, line.slice('ready '.length).trim(), path.join(folder, 'kubeconfig'));
}

/** The first line on standard output, or what there is when it ends. */
function firstLine(server) {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    const lines = createInterface({ input: server.stdout });
    lines.once('line', resolve);
    lines.once('close', () => resolve(''));
  });
}

function withSkiff(...given) {
  const body = given.pop();
  const [options] = given;
  return withPlane(() => plane(options), body);
}

function withFork(prepared, ...given) {
  const body = given.pop();
  const [workloads] = given;
  return withPlane(async () => (await prepared()).fork(workloads), body);
}

/** A test with a control plane that is made for it. */
function withPlane(make, body) {
  // Runners look at how many parameters a test has: none are named here.
  return async (...row) => {
    const skiff = await make();
    try {
      return await body({ skiff }, ...row);
    } catch (error) {
      tell(skiff);
      throw error;
    } finally {
      await skiff.stop();
    }
  };
}

/** Prints what a control plane was asked, for a test that failed. */
function tell(skiff, name = 'skiff') {
  console.error([`${name}: ${skiff.url} was asked`, ...skiff.log].join('\n  '));
}

module.exports = { Clock, ControlPlane, InjectedFault, endShared, plane, program, start, tell, withFork, withSkiff };
