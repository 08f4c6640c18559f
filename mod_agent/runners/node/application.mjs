// SPDX-License-Identifier: Apache-2.0
// The folder of an application: its langgraph.json, its environment.
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { getSystemErrorMap } from 'node:util';
import { RunnerError } from './errors.mjs';

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

// The value of a line NAME=VALUE, as dotenv files have it.
function unquote(text) {
    const quoted = /^(["'`])([\s\S]*)\1$/.exec(text.trim());
    if (!quoted) {
        return text.replace(/\s#.*$/, '').trim();
    }
    return quoted[1] === '"' ? quoted[2].replace(/\\n/g, '\n').replace(/\\r/g, '\r') : quoted[2];
}

function parseEnvironment(text) {
    const line = /^\s*(?:export\s+)?([\w.-]+)\s*=[ \t]*("(?:\\.|[^"\\])*"|'[^']*'|`[^`]*`|[^\n]*)/gm;
    return Object.fromEntries([...text.matchAll(line)].map(([, name, value]) => [name, unquote(value)]));
}

function readEnvironment(directory, file) {
    try {
        return parseEnvironment(readFileSync(path.resolve(directory, file), 'utf8'));
    } catch (error) {
        const [, reason] = getSystemErrorMap().get(error.errno) ?? [undefined, error.message];
        throw new RunnerError('ValueError', `langgraph.json: env: ${file}: ${reason}`);
    }
}

// Sets the variables of langgraph.json's `env`: a file, or an object; a list names
// variables that the process has already. One that is set stays.
export function setEnvironment(directory, env) {
    let values = {};
    if (typeof env === 'string') {
        values = readEnvironment(directory, env);
    } else if (env !== null && typeof env === 'object' && !Array.isArray(env)) {
        values = env;
    }
    for (const [name, value] of Object.entries(values)) {
        process.env[name] ??= String(value);
    }
}
