// A control plane for a test: a server in memory, from its start to its end.

'use strict';

const { spawn } = require('node:child_process');
const { randomUUID } = require('node:crypto');
const { tmpdir } = require('node:os');
const path = require('node:path');
const { createInterface } = require('node:readline');

const { program } = require('./program.cjs');

/** How many lines of what the server says are kept: the newest. */
const LINES_MAX = 10_000;
/** How long a server may take to end before it is killed. */
const STOP_MAX_MS = 10_000;

/** A running control plane. See index.d.ts. */
class ControlPlane {
  #server;
  #said;
  #ended;

  constructor(server, said, ended, url, kubeconfig) {
    this.#server = server;
    this.#said = said;
    this.#ended = ended;
    this.url = url;
    this.kubeconfig = kubeconfig;
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

  async stop() {
    const killed = setTimeout(() => this.#server.kill('SIGKILL'), STOP_MAX_MS);
    this.#server.kill('SIGTERM');
    await this.#ended;
    clearTimeout(killed);
  }

  async [Symbol.asyncDispose ?? Symbol.for('Symbol.asyncDispose')]() {
    await this.stop();
  }
}

async function start(options = {}) {
  const folder = path.join(tmpdir(), `skiff-${randomUUID()}`);
  const fixed = ['serve', '--temporary', '--listen', '127.0.0.1:0', '--store', 'memory', '--data-dir', folder];
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
  // Runners look at how many parameters a test has: none are named here.
  return async (...row) => {
    const skiff = await start(options);
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

module.exports = { ControlPlane, program, start, tell, withSkiff };
