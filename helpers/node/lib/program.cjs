// Where the program `skiff` is.

'use strict';

const { existsSync, realpathSync, statSync } = require('node:fs');
const path = require('node:path');

/** What the file is called. */
const NAME = process.platform === 'win32' ? 'skiff.exe' : 'skiff';

/**
 * The program that the variable SKIFF names, else that of the package for this machine, else that on the PATH.
 *
 * @returns {string} the path of the program
 * @throws {Error} where there is none, or where SKIFF names none
 */
function program() {
  const named = process.env.SKIFF;
  if (named) {
    const found = named.includes(path.sep) ? named : onPath(named);
    if (!found || !existsSync(found)) {
      throw new Error(`SKIFF is ${named}, which is not a program`);
    }
    return path.resolve(found);
  }
  const found = packaged() ?? onPath(NAME);
  if (!found) {
    const wanted = `@kubeskiff/${process.platform}-${process.arch}`;
    throw new Error(`no skiff is in the package ${wanted} or on the PATH; SKIFF may name one`);
  }
  return found;
}

/** The program in the package for this kind of machine, where npm has installed that. */
function packaged() {
  try {
    return require.resolve(`@kubeskiff/${process.platform}-${process.arch}/bin/${NAME}`);
  } catch {
    return undefined;
  }
}

function onPath(name) {
  const own = path.join(__dirname, '..', 'bin');
  for (const folder of (process.env.PATH ?? '').split(path.delimiter)) {
    // npm's links to this package's own command lead back here.
    const found = path.join(folder, name);
    if (isFile(found) && !realpathSync(found).startsWith(own)) {
      return found;
    }
  }
  return undefined;
}

function isFile(file) {
  return statSync(file, { throwIfNoEntry: false })?.isFile() ?? false;
}

module.exports = { program };
