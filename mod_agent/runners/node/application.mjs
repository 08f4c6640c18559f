// SPDX-License-Identifier: Apache-2.0
// The folder of an application: its langgraph.json, its environment.
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { getSystemErrorMap } from 'node:util';
import { RunnerError } from './errors.mjs';

// The folder, in that of an application, for what `agentctl build` makes.
export const BUILD_FOLDER = '.agent';

export function readConfig(directory) {
    const file = path.join(directory, 'langgraph.json');
    let config;
    try {
        config = JSON.parse(readFileSync(file, 'utf8'));
    } catch (error) {
        throw new RunnerError('ValueError', `${file}: ${error.message}`);
    }
    if (config === null || typeof config !== 'object' || typeof config.graphs !== 'object' || !config.graphs) {
        throw new RunnerError('ValueError', `${file}: it has no object "graphs"`);
    }
    return config;
}

// The path of a graph: "file:export", or an object with it.
export function pathOf(graph) {
    const found = typeof graph === 'string' ? graph : graph?.path;
    return typeof found === 'string' ? found : '';
}

// A line NAME=VALUE, as ../README.md has it; the same expression is in python/application.py.
// util.parseEnv() is not part of Node 20 before 20.12, nor the same in all versions.
const ENV_LINE = new RegExp([
    /(?<![^\n])[ \t]*(?:export[ \t]+)?([A-Za-z0-9_.-]+)[ \t]*=[ \t]*/,
    /(?:(?:"((?:\\[^]|[^"\\])*)"|'([^']*)'|`([^`]*)`)[ \t]*(?:#[^\n]*)?|#[^\n]*|([^\n]*?)(?:[ \t]+#[^\n]*|[ \t]*))/,
    /(?![^\n])/,
].map((part) => part.source).join(''), 'g');
const ESCAPES = { n: '\n', r: '\r', '"': '"', '\\': '\\' };

function parseEnv(text) {
    return Object.fromEntries([...text.replace(/\r\n?/g, '\n').matchAll(ENV_LINE)].map(
        ([, name, double, single, back, plain]) => [name, double === undefined ? single ?? back ?? plain ?? ''
            : double.replace(/\\([nr"\\])/g, (_, letter) => ESCAPES[letter])]));
}

function readEnv(directory, file) {
    try {
        return parseEnv(readFileSync(path.resolve(directory, file), 'utf8'));
    } catch (error) {
        const [, reason] = getSystemErrorMap().get(error.errno) ?? [undefined, error.message];
        throw new RunnerError('ValueError', `langgraph.json: env: ${file}: ${reason}`);
    }
}

// Sets the variables of langgraph.json's `env`: a file, or an object; a list names
// variables that the process has already. A variable that is set stays.
export function setEnv(directory, env) {
    let values = {};
    if (typeof env === 'string') {
        values = readEnv(directory, env);
    } else if (env !== null && typeof env === 'object' && !Array.isArray(env)) {
        values = env;
    }
    for (const [name, value] of Object.entries(values)) {
        process.env[name] ??= String(value);
    }
}
