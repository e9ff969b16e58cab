// Requests to what a control plane has beside the API of Kubernetes: /skiff/v1.

'use strict';

const { readFileSync } = require('node:fs');
const https = require('node:https');

/** A client of the administrator that a kubeconfig of skiff's is for. */
class Api {
  #url;
  #tls;

  constructor(url, kubeconfig) {
    const text = readFileSync(kubeconfig, 'utf8');
    const part = (name) => Buffer.from(new RegExp(`^\\s*${name}: (\\S+)$`, 'm').exec(text)[1], 'base64');
    this.#url = url;
    this.#tls = {
      ca: part('certificate-authority-data'),
      cert: part('client-certificate-data'),
      key: part('client-key-data'),
    };
  }

  /** The JSON that a request with a JSON body is answered with; an error with `code` where that is not a success. */
  send(method, path, body) {
    const sent = body === undefined ? undefined : JSON.stringify(body);
    const headers = { 'Content-Type': 'application/json' };
    return new Promise((resolve, reject) => {
      const request = https.request(this.#url + path, { method, headers, agent: false, ...this.#tls }, (answer) => {
        let said = '';
        answer.setEncoding('utf8');
        answer.on('data', (part) => (said += part));
        answer.on('error', reject);
        answer.on('end', () => {
          try {
            const value = JSON.parse(said);
            if (answer.statusCode < 400) {
              resolve(value);
            } else {
              reject(Object.assign(new Error(`skiff answered ${answer.statusCode}: ${value.message}`), { code: answer.statusCode }));
            }
          } catch {
            reject(new Error(`skiff answered ${answer.statusCode}: ${said}`));
          }
        });
      });
      request.on('error', reject);
      request.end(sent);
    });
  }
}

module.exports = { Api };
