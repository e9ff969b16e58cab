// The servers that the tests of a process share: one for each set of options.

'use strict';

const { clearTimeout, setTimeout } = require('node:timers');

/** How long a server without a control plane in use is kept for the next test. */
const IDLE_MAX_MS = 1000;

/** Those that run or start, by their options. */
const servers = new Map();

/**
 * A new control plane in the server that was started with these options, or is by `start`. Runners load this module anew for
 * each file of tests, and none says when it is the last one: so a server ends when nobody has used it for a while.
 */
async function shared(options, start) {
  const server = serverOf(options, start);
  server.users += 1;
  clearTimeout(server.ending);
  try {
    const plane = await (await server.started).fork();
    const stop = plane.stop.bind(plane);
    plane.stop = async () => {
      plane.stop = stop;
      try {
        await stop();
      } finally {
        leave(server);
      }
    };
    return plane;
  } catch (error) {
    leave(server);
    throw error;
  }
}

function serverOf(options, start) {
  // Paths are seen from the folder, and tests may change that.
  const key = JSON.stringify([process.cwd(), process.env.SKIFF, options], (_, value) => (value instanceof URL ? String(value) : value));
  let server = servers.get(key);
  if (server === undefined) {
    server = { key, users: 0, started: start(options), ending: undefined };
    servers.set(key, server);
  }
  return server;
}

function leave(server) {
  server.users -= 1;
  if (server.users === 0) {
    // It does not keep the process, with which the server ends, too.
    server.ending = setTimeout(() => end(server), IDLE_MAX_MS).unref();
  }
}

async function end(server) {
  servers.delete(server.key);
  clearTimeout(server.ending);
  try {
    await (await server.started).stop();
  } catch {
    // One that did not start has told so to its tests.
  }
}

/** Ends all that nobody uses. */
async function endShared() {
  await Promise.all([...servers.values()].filter((server) => server.users === 0).map(end));
}

module.exports = { endShared, shared };
