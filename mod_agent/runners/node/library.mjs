// SPDX-License-Identifier: Apache-2.0
// The application's own copies of @langchain/langgraph. A package has two builds,
// for import and for require, whose classes differ; an application may load either, and
// one of its packages another version: so each graph is used with the copy that it was
// made with, from which all classes of the runner come.
import { createRequire } from 'node:module';
import { existsSync, readFileSync, realpathSync } from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { watchCommands } from './commands.mjs';
import { RunnerError } from './errors.mjs';
import { makeSaver } from './saver.mjs';
import { makeStore } from './store.mjs';

const NAME = '@langchain/langgraph';
// The least major version. Interrupts of an older one have no id.
const LEAST_MAJOR = 1;
// Packages that depend on it. An application of theirs may not name it, and pnpm links in
// its node_modules only what it names.
const DEPENDENTS = ['langchain', 'deepagents'];
// Where pnpm links what packages of others, unknown here, depend on.
const HOISTED = `.pnpm/node_modules/${NAME}`;

// The folder of the package that modules below `directory` get by this name.
function findPackage(name, directory) {
    for (let folder = directory; ; folder = path.dirname(folder)) {
        const found = path.join(folder, 'node_modules', name);
        if (existsSync(path.join(found, 'package.json'))) {
            return realpathSync(found);
        }
        if (folder === path.dirname(folder)) {
            return undefined;
        }
    }
}

// The folders of the library of which graphs of an application may be: its own, that of
// each dependent, seen from that one's own folder, and the one that pnpm shares.
function findLibraries(directory) {
    const dependents = DEPENDENTS.map((name) => findPackage(name, directory)).filter(Boolean);
    const found = [directory, ...dependents].map((folder) => findPackage(NAME, folder));
    return [...new Set([...found, findPackage(HOISTED, directory)])].filter(Boolean);
}

// The file that a condition of the package's exports names.
function entryOf(description, condition) {
    const entry = description.exports?.['.']?.[condition];
    return typeof entry === 'string' ? entry : entry?.default ?? description.main;
}

// One build of the library, with a saver and a store of its classes. waits: whether it
// awaits the put of each step with durability `sync`.
function wrap(module, waits, version) {
    watchCommands(module);
    return { ...module, saver: makeSaver(module), store: makeStore(module), waits, version };
}

// A folder of the library, and the two copies that it has.
class Package {
    #folder;
    #description;
    // condition -> promise of a build.
    #copies = new Map();

    constructor(folder) {
        this.#folder = folder;
        this.#description = JSON.parse(readFileSync(path.join(folder, 'package.json'), 'utf8'));
    }

    get version() {
        return this.#description.version;
    }

    // Throws if it is too old.
    check() {
        if (Number.parseInt(this.version, 10) < LEAST_MAJOR) {
            throw new RunnerError('LibraryVersionError', `${NAME} ${this.version} (${this.#folder}) is too old: `
                + `${LEAST_MAJOR}.0 or newer is needed (dependencies of package.json; then agentctl build)`);
        }
    }

    // Found by the name of a method in the source: it does not follow from the version.
    #waits() {
        try {
            const file = path.join(this.#folder, 'dist', 'pregel', 'loop.js');
            return readFileSync(file, 'utf8').includes('_awaitCheckpointerPromises');
        } catch {
            return false;
        }
    }

    // Each build is loaded once, also if graphs request it at the same time.
    load(condition) {
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
}

export class Library {
    #packages;

    constructor(directory) {
        this.#packages = findLibraries(directory).map((folder) => new Package(folder));
        // Others may be of packages that no graph uses.
        this.#packages[0]?.check();
    }

    get version() {
        return this.#packages[0]?.version ?? null;
    }

    // The copy of which `test(copy)` is true; the first one for import if it is of none.
    async of(test) {
        if (this.#packages.length === 0) {
            throw new RunnerError('ModuleNotFoundError',
                `the application has no package ${NAME}: install its dependencies`);
        }
        for (const found of this.#packages) {
            for (const condition of ['import', 'require']) {
                const copy = await found.load(condition);
                if (test(copy)) {
                    found.check();
                    return copy;
                }
            }
        }
        return this.#packages[0].load('import');
    }
}
