// What time it is for a control plane.

'use strict';

const { duration } = require('./faults.cjs');

const PATH = '/skiff/v1/clock';

/** The clock of one control plane. See index.d.ts. */
class Clock {
  #api;

  constructor(api) {
    this.#api = api;
  }

  async now() {
    return new Date((await this.#api.send('GET', PATH)).time);
  }

  async set(time) {
    await this.#api.send('PUT', PATH, { time: time.toISOString() });
  }

  async advance(by) {
    await this.#api.send('PUT', PATH, { advance: duration(by) });
  }

  async freeze() {
    await this.#api.send('PUT', PATH, { frozen: true });
  }

  async run() {
    await this.#api.send('PUT', PATH, { frozen: false });
  }

  async reset() {
    await this.#api.send('PUT', PATH, {});
  }
}

module.exports = { Clock };
