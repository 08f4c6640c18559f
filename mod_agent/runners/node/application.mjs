// SPDX-License-Identifier: Apache-2.0
// The folder of an application: its langgraph.json, its environment.
import { isUtf8 } from 'node:buffer';
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
// Of numbers that both languages write in the same way, without an exponent.
const NUMBER_MIN = 0.0001;
const NUMBER_MAX = 999999999999999;
const ESCAPES = { n: '\n', r: '\r', '"': '"', '\\': '\\' };

function isBad(text) {
    return text.includes('\0') || !text.isWellFormed();
}

function parseEnv(text) {
    return Object.fromEntries([...text.replace(/\r\n?/g, '\n').matchAll(ENV_LINE)].map(
        ([, name, double, single, back, plain]) => [name, double === undefined ? single ?? back ?? plain ?? ''
            : double.replace(/\\([nr"\\])/g, (_, letter) => ESCAPES[letter])]));
}

function readEnv(directory, file) {
    try {
        const bytes = readFileSync(path.resolve(directory, file));
        if (!isUtf8(bytes)) {
            throw new Error('it is not UTF-8');
        }
        return parseEnv(bytes.toString());
    } catch (error) {
        const [, reason] = getSystemErrorMap().get(error.errno) ?? [undefined, error.message];
        throw new RunnerError('ValueError', `${file}: ${reason}`);
    }
}

// The value of a variable; throws with the texts of ../python/application.py.
function variableOf(name, value) {
    let reason;
    if (name === '' || name.includes('=') || isBad(name)) {
        reason = 'a name is not empty, and has no =, U+0000 and unpaired surrogates';
    } else if (typeof value === 'string') {
        reason = isBad(value) ? 'a value has no U+0000 and no unpaired surrogates' : undefined;
    } else if (typeof value !== 'number') {
        reason = 'expected a string or a number';
    } else if (value !== 0 && !(Math.abs(value) >= NUMBER_MIN && Math.abs(value) <= NUMBER_MAX)) {
        reason = 'expected a number from 0.0001 to 999999999999999, or a string';
    }
    if (reason) {
        throw new RunnerError('ValueError', `${JSON.stringify(name)}: ${reason}`);
    }
    return String(value);
}

// The variables of `env`: a file, or an object; a list names variables that the process
// has already.
function variablesOf(directory, env) {
    let values = {};
    if (typeof env === 'string') {
        values = readEnv(directory, env);
    } else if (env !== null && typeof env === 'object' && !Array.isArray(env)) {
        values = env;
    }
    return Object.entries(values).map(([name, value]) => [name, variableOf(name, value)]);
}

// Sets the variables of langgraph.json's `env`. A variable that is set stays.
export function setEnv(directory, env) {
    let variables;
    try {
        variables = variablesOf(directory, env);
    } catch (error) {
        // The log has lines of several applications.
        throw new RunnerError('ValueError', `${directory}/langgraph.json: env: ${error.message}`);
    }
    for (const [name, text] of variables) {
        process.env[name] ??= text;
    }
}
