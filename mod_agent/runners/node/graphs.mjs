// SPDX-License-Identifier: Apache-2.0
// The graphs of an application: importing them, compiled or not, and factories.
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { BUILD_FOLDER } from './application.mjs';
import { describeError, RunnerError, stackOf } from './errors.mjs';
import { log } from './log.mjs';

// Purposes for which factories are called.
export const RUN = 'threads.create_run';
export const UPDATE = 'threads.update';
export const DESCRIBE = 'assistants.read';
const TYPESCRIPT = /\.(?:[mc]?ts|tsx|jsx)$/;

// The preparation for TypeScript, once for all graphs.
let typeScript;

// Registers the tsx that modules of the folder resolve; false if they resolve none.
async function registerTsx(folder) {
    const require = createRequire(path.join(folder, 'package.json'));
    let description;
    try {
        description = require.resolve('tsx/package.json');
    } catch {
        return false;
    }
    const { exports } = require(description);
    const entry = exports['./esm/api'].import?.default ?? exports['./esm/api'].import ?? exports['./esm/api'];
    require('tsx/cjs/api').register();
    (await import(pathToFileURL(path.join(path.dirname(description), entry)).href)).register();
    return true;
}

// Loads tsx, which lets this process import TypeScript: the copy that `agentctl build`
// has installed for the application, else the runner's own, else the application's.
// Without one, Node may be able to (from 22.18 on).
async function prepareTypeScript(directory) {
    // It keeps compiled code in a folder of /tmp with a known name, which another user could have made.
    process.env.TSX_DISABLE_CACHE = '1';
    const here = path.dirname(fileURLToPath(import.meta.url));
    for (const folder of [path.join(directory, BUILD_FOLDER, 'tsx'), here, directory]) {
        if (await registerTsx(folder)) {
            return;
        }
    }
    if (!process.features.typescript) {
        throw new RunnerError('ModuleNotFoundError',
            `a graph in TypeScript needs tsx: run agentctl build, or add tsx to the application`);
    }
}

async function importExport(directory, spec) {
    const colon = spec.lastIndexOf(':');
    if (colon < 1) {
        throw new RunnerError('ValueError', `${spec}: not FILE:NAME`);
    }
    const [file, name] = [spec.slice(0, colon), spec.slice(colon + 1)];
    const full = path.resolve(directory, file);
    if (!existsSync(full)) {
        throw new RunnerError('FileNotFoundError', `there is no file ${file}`);
    }
    if (TYPESCRIPT.test(full)) {
        await (typeScript ??= prepareTypeScript(directory));
    }
    const module = await import(pathToFileURL(full).href);
    const found = module[name] ?? module.default?.[name];
    if (found === undefined || found === null) {
        throw new RunnerError('AttributeError', `${file} has no export "${name}"`);
    }
    return found;
}

function isCompiled(graph) {
    return typeof graph?.stream === 'function' && typeof graph?.getState === 'function';
}

// The compiled graph of what a file exports or a factory returns. createAgent's
// result has its graph as a member.
function compiled(exported) {
    const graph = isCompiled(exported) || typeof exported?.compile !== 'function' ? exported : exported.compile();
    const inner = graph?.graph;
    if (isCompiled(inner)) {
        return inner;
    }
    if (!isCompiled(graph)) {
        throw new RunnerError('TypeError', 'the export is neither a graph nor a function that returns one');
    }
    return graph;
}

// The second argument of a factory. Only that of a run has an executionRuntime, with
// the client's context, so that a factory opens costly things for runs alone.
function makeRuntime(accessContext, context) {
    return { accessContext, executionRuntime: accessContext === RUN ? { context: context ?? {} } : null };
}

// The context of a run: the client's. Without it a graph with a context schema gets the members
// of `configurable` with its names, where clients of older libraries send them.
export function contextOf(graph, given, configurable) {
    const names = Object.keys(graph.builder?._configRuntimeSchema?.shape ?? {});
    if (names.length === 0 || Object.keys(given).length > 0) {
        return Object.keys(given).length > 0 ? given : undefined;
    }
    return Object.fromEntries(names.filter((name) => Object.hasOwn(configurable, name))
        .map((name) => [name, configurable[name]]));
}

// The class of all graphs of a copy of the library.
function baseOf(library) {
    let base = library.CompiledStateGraph;
    while (base.name !== 'Pregel' && typeof Object.getPrototypeOf(base)?.prototype === 'object') {
        base = Object.getPrototypeOf(base);
    }
    return base;
}

export class Graph {
    #library;
    #exported;
    #graph;

    constructor(name, definition) {
        this.name = name;
        this.definition = definition;
    }

    // A graph that the application does not have: its runs have the error.
    static absent(name) {
        const graph = new Graph(name, {});
        graph.error = new RunnerError('GraphNotFound', `the application has no graph ${name}`);
        return graph;
    }

    // Imports the graph. An error is kept for its runs.
    async load(directory, library) {
        this.#library = library;
        try {
            const exported = await importExport(directory, this.definition.path);
            if (typeof exported !== 'function' || isCompiled(exported)) {
                this.#graph = await this.#equip(await exported);
            }
            this.#exported = exported;
        } catch (error) {
            this.error ??= error;
            log(`graph ${this.name}: ${stackOf(error)}`);
        }
    }

    // The report of a graph that is not ready after `seconds`. The error of a pending import
    // stays, even if the import ends later, since the server has it already; a factory is
    // called again for each run.
    giveUp(seconds) {
        const what = this.#exported === undefined ? 'import' : this.isFactory ? 'factory' : 'drawing';
        const error = new RunnerError('TimeoutError',
            `the ${what} of ${this.definition.path} has not ended after ${seconds} s of waiting`);
        if (this.#exported === undefined) {
            this.error = error;
        }
        log(`graph ${this.name}: ${error.name}: ${error.message}`);
        return { description: this.description, error: describeError(error) };
    }

    get description() {
        return this.definition.description ?? null;
    }

    // The graph with the saver and the store of this process, and the library's copy. The
    // application's own object remains as it is: it may be a node of another graph.
    async #equip(exported) {
        const found = compiled(exported);
        const copy = await this.#library.of((library) => found instanceof baseOf(library));
        const graph = Object.assign(found.withConfig({}), found);
        graph.checkpointer = copy.saver;
        graph.store = copy.store;
        return { graph, library: copy };
    }

    get isFactory() {
        return this.#graph === undefined;
    }

    // {graph, library} for a purpose: a factory makes a new graph each time.
    async use(accessContext, config, context) {
        if (this.error) {
            throw this.error;
        }
        return this.#graph ?? this.#equip(await this.#exported(config, makeRuntime(accessContext, context)));
    }
}
