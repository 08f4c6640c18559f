// SPDX-License-Identifier: Apache-2.0
// Compiles the TypeScript of an application, for `agentctl build`: each module by itself,
// with the esbuild of tsx, into .agent/compiled, where compiled.mjs finds it. A module
// imports what it did: others of the application in that folder, packages by their names.
// Code that could behave differently there is refused, and left to tsx at each start.
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createHash } from 'node:crypto';
import { createRequire } from 'node:module';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { digestOf, FOLDER, INDEX } from './compiled.mjs';
import { findTsx } from './graphs.mjs';

const SOURCE = /\.(?:[mc]?[jt]s|[jt]sx)$/;
// Import of a computed name; a property of import.meta that is not replaced; CommonJS.
const REFUSED = [
    [/\bimport\s*\(\s*(?!(["'])[^"'`\n]*\1\s*\))/, 'imports a name that is computed'],
    [/\bimport\.meta\b(?!\.(?:url|dirname|filename)\b)/, 'uses import.meta'],
    [/\brequire\b|\bmodule\.exports\b|\b__dirname\b|\b__filename\b/, 'uses names of CommonJS'],
];
const MODULES_MAX = 2000;

// The nearest package.json above a file; all files must have the application's.
function packageOf(file) {
    for (let folder = path.dirname(file); ; folder = path.dirname(folder)) {
        if (existsSync(path.join(folder, 'package.json')) || folder === path.dirname(folder)) {
            return folder;
        }
    }
}

class Compilation {
    #directory;
    #esbuild;
    #isModule;
    #options = { tsconfigRaw: {} };
    // file -> name of its module.
    #names = new Map();
    #waiting = [];
    // Why the application is left to tsx.
    refusal;
    sources = {};
    modules = {};

    constructor(directory) {
        this.#directory = directory;
        this.#esbuild = createRequire(findTsx(directory))('esbuild');
        this.#isModule = JSON.parse(readFileSync(path.join(directory, 'package.json'), 'utf8')).type === 'module';
    }

    // esbuild reports an error of a plugin as one of its own.
    #refuse(file, reason) {
        this.refusal = new Error(`${path.relative(this.#directory, file)} ${reason}`);
        throw this.refusal;
    }

    #isOwn(file) {
        const inside = path.relative(this.#directory, file);
        return !inside.startsWith('..') && !path.isAbsolute(inside) && !inside.split(path.sep).includes('node_modules');
    }

    // The name of the module of a file, which is compiled later.
    add(file) {
        if (!this.#names.has(file)) {
            const key = createHash('sha256').update(file).digest('hex').slice(0, 16);
            this.#names.set(file, `${path.parse(file).name.replaceAll(/[^\w-]/g, '_')}-${key}.mjs`);
            this.#waiting.push(file);
            if (this.#names.size > MODULES_MAX) {
                this.#refuse(file, `is one of more than ${MODULES_MAX} files`);
            }
        }
        return this.#names.get(file);
    }

    #check(file) {
        if (packageOf(file) !== this.#directory) {
            this.#refuse(file, 'has a package.json of its own');
        }
        if (!this.#isModule && !/\.m[jt]s$/.test(file) || /\.c[jt]s$/.test(file)) {
            this.#refuse(file, 'is not of a package with "type": "module"');
        }
        const text = readFileSync(file, 'utf8');
        const found = REFUSED.find(([pattern]) => pattern.test(text));
        if (found) {
            this.#refuse(file, found[1]);
        }
    }

    // Where a module's imports lead: to other modules of this folder, by tsconfig.json too.
    #resolver(file) {
        const resolve = async (build, { path: name, kind, resolveDir, pluginData }) => {
            if (kind === 'entry-point' || pluginData === 'resolving' || name.startsWith('node:')) {
                return kind === 'entry-point' || pluginData === 'resolving' ? undefined : { path: name, external: true };
            }
            const found = await build.resolve(name, { kind, resolveDir, pluginData: 'resolving' });
            const isFile = found.errors.length === 0 && !found.external && path.isAbsolute(found.path);
            if (isFile && this.#isOwn(found.path) && SOURCE.test(found.path)) {
                return { path: `./${this.add(found.path)}`, external: true };
            }
            if (name.startsWith('.') || path.isAbsolute(name) || (isFile && /tsx?$/.test(found.path))) {
                this.#refuse(file, `imports ${name}`);
            }
            return { path: name, external: true };
        };
        return { name: 'modules', setup: (build) => build.onResolve({ filter: /.*/ }, (given) => resolve(build, given)) };
    }

    async #compile(file) {
        this.#check(file);
        const url = pathToFileURL(file).href;
        const { outputFiles } = await this.#esbuild.build({
            absWorkingDir: this.#directory, entryPoints: [file], plugins: [this.#resolver(file)], bundle: true, write: false,
            format: 'esm', platform: 'node', target: `node${process.versions.node}`, treeShaking: false, ignoreAnnotations: true, keepNames: true,
            sourcemap: 'inline', sourcesContent: false,
            outfile: path.join(this.#directory, FOLDER, this.#names.get(file)), logLevel: 'silent',
            ...this.#options,
            define: { 'import.meta.url': JSON.stringify(url), 'import.meta.dirname': JSON.stringify(path.dirname(file)),
                'import.meta.filename': JSON.stringify(file) },
        });
        return outputFiles[0].contents;
    }

    #keepSource(file) {
        this.sources[path.relative(this.#directory, file)] = digestOf(file);
    }

    // As tsx: that of the working directory, for all files.
    #readOptions() {
        const file = path.join(this.#directory, 'tsconfig.json');
        if (existsSync(file)) {
            if (/"extends"\s*:\s*(?:\[|"\.)/.test(readFileSync(file, 'utf8'))) {
                this.#refuse(file, 'extends another file');
            }
            this.#options = { tsconfig: file };
            this.#keepSource(file);
        }
    }

    async write(folder) {
        this.#readOptions();
        this.#keepSource(path.join(this.#directory, 'package.json'));
        for (let file = this.#waiting.shift(); file !== undefined; file = this.#waiting.shift()) {
            this.#keepSource(file);
            const name = this.#names.get(file);
            writeFileSync(path.join(folder, name), await this.#compile(file));
            this.modules[name] = digestOf(path.join(folder, name));
        }
    }
}

// Compiles all files of graphs, or throws; then nothing is left in the folder.
export async function compileGraphs(directory, files) {
    const folder = path.join(directory, FOLDER);
    rmSync(folder, { recursive: true, force: true });
    let compilation;
    try {
        compilation = new Compilation(directory);
        const graphs = Object.fromEntries(files.map((file) => [file, compilation.add(path.resolve(directory, file))]));
        mkdirSync(folder);
        await compilation.write(folder);
        const { sources, modules } = compilation;
        writeFileSync(path.join(folder, INDEX), JSON.stringify({ directory, node: process.version, sources, modules, graphs }));
    } catch (error) {
        rmSync(folder, { recursive: true, force: true });
        throw compilation?.refusal ?? error;
    }
}
