// Faults of requests, on demand.

'use strict';

const PATH = '/skiff/v1/faults';

/** A fault that a control plane has. See index.d.ts. */
class InjectedFault {
  #api;
  #path;

  constructor(api, id) {
    this.#api = api;
    this.#path = `${PATH}/${id}`;
  }

  async hits() {
    return (await this.#api.send('GET', this.#path)).hits;
  }

  async remove() {
    try {
      await this.#api.send('DELETE', this.#path);
    } catch (error) {
      if (error.code !== 404) {
        throw error;
      }
    }
  }

  async [Symbol.asyncDispose ?? Symbol.for('Symbol.asyncDispose')]() {
    await this.remove();
  }
}

/** Adds a fault. */
async function inject(api, { delay, error, watch, ...rest }) {
  const added = await api.send('POST', PATH, {
    ...rest,
    delay: duration(delay),
    error: typeof error === 'number' ? { code: error } : error,
    watch: typeof watch === 'string' ? { end: watch } : watch && { ...watch, after: duration(watch.after) },
  });
  return new InjectedFault(api, added.id);
}

/** Milliseconds as Go writes them; a text as it is. */
function duration(time) {
  return typeof time === 'number' ? `${Math.round(time * 1000)}us` : time;
}

module.exports = { InjectedFault, duration, inject };
