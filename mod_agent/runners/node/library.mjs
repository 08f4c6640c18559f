// SPDX-License-Identifier: Apache-2.0
// The application's own copy of @langchain/langgraph. A package has two builds,
// for import and for require, whose classes differ; an application may load
// either, so each graph is used with the one that it was made with.
import { createRequire } from 'node:module';
import { existsSync, readFileSync, realpathSync } from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { RunnerError } from './errors.mjs';
import { makeSaver } from './saver.mjs';
import { makeStore } from './store.mjs';

const NAME = '@langchain/langgraph';

// The folder of the package that modules below `directory` get.
function findPackage(directory) {
    for (let folder = directory; ; folder = path.dirname(folder)) {
        const found = path.join(folder, 'node_modules', NAME);
        if (existsSync(path.join(found, 'package.json'))) {
            return realpathSync(found);
        }
        if (folder === path.dirname(folder)) {
            return undefined;
        }
    }
}

// The file that a condition of the package's exports names.
function entryOf(description, condition) {
    const entry = description.exports?.['.']?.[condition];
    return typeof entry === 'string' ? entry : entry?.default ?? description.main;
}

// A copy for the runner: its classes, a saver and a store of them; waits: whether it waits
// for the checkpoint of each step with durability sync.
function wrap(module, waits, version) {
    return { ...module, saver: makeSaver(module), store: makeStore(module), waits, version };
}

export class Library {
    #folder;
    #description;
    // condition -> promise of a copy.
    #copies = new Map();

    constructor(directory) {
        this.#folder = findPackage(directory);
        this.#description = this.#folder
            && JSON.parse(readFileSync(path.join(this.#folder, 'package.json'), 'utf8'));
    }

    get version() {
        return this.#description?.version ?? null;
    }

    // Newer versions have this method, which no version number tells.
    #waits() {
        try {
            const file = path.join(this.#folder, 'dist', 'pregel', 'loop.js');
            return readFileSync(file, 'utf8').includes('_awaitCheckpointerPromises');
        } catch {
            return false;
        }
    }

    // One copy for all graphs, which may load at the same time.
    #load(condition) {
        if (!this.#copies.has(condition)) {
            this.#copies.set(condition, this.#import(condition));
        }
        return this.#copies.get(condition);
    }

    async #import(condition) {
        const file = path.join(this.#folder, entryOf(this.#description, condition));
        const module = condition === 'import' ? await import(pathToFileURL(file).href) : createRequire(file)(file);
        return wrap(module, this.#waits(), this.version);
    }

    // The copy of which `test(copy)` is true; the one for import if it is of none.
    async of(test) {
        if (!this.#folder) {
            throw new RunnerError('ModuleNotFoundError',
                `the application has no package ${NAME}: install its dependencies`);
        }
        const copy = await this.#load('import');
        if (test(copy)) {
            return copy;
        }
        const other = await this.#load('require');
        return test(other) ? other : copy;
    }
}
