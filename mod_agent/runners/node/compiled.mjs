// SPDX-License-Identifier: Apache-2.0
// The modules that `compile.mjs` has made of an application in TypeScript, which Node
// imports as they are. Starts are faster by the tsx that they need not load. They are used only as
// a whole: when every source is as it was, every module as it was written, and Node the same.
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { BUILD_FOLDER } from './application.mjs';

export const FOLDER = path.join(BUILD_FOLDER, 'compiled');
export const INDEX = 'index.json';

export function digestOf(file) {
    return createHash('sha256').update(readFileSync(file)).digest('hex');
}

function isUnchanged(folder, digests) {
    return Object.entries(digests).every(([name, digest]) => digestOf(path.resolve(folder, name)) === digest);
}

// The compiled modules of the files of graphs, as langgraph.json has them. Empty if there
// are none that can be used: then tsx compiles.
export function findCompiled(directory, files) {
    const folder = path.join(directory, FOLDER);
    try {
        const { directory: place, node, sources, modules, graphs } = JSON.parse(readFileSync(path.join(folder, INDEX), 'utf8'));
        // import.meta.url of a module has the place.
        if (place === directory && node === process.version && files.every((file) => Object.hasOwn(graphs, file))
            && isUnchanged(directory, sources) && isUnchanged(folder, modules)) {
            process.setSourceMapsEnabled(true);
            return new Map(Object.entries(graphs).map(([file, name]) => [file, path.join(folder, name)]));
        }
    } catch {
        // There is none, or it is damaged.
    }
    return new Map();
}
