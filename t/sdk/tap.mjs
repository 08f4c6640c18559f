// SPDX-License-Identifier: Apache-2.0
// Scenarios that go on side by side and print their TAP in one piece each; and
// the steps that most of them begin with.
import { isDeepStrictEqual } from 'node:util';
import path from 'node:path';
import { pathToFileURL } from 'node:url';

const modules = process.argv[2];
const sdk = await import(pathToFileURL(
    path.join(modules, '@langchain/langgraph-sdk/dist/index.js')));

export const serverUrl = process.env.AGENT_TEST_URL;
export const proxyUrl = process.env.AGENT_TEST_PROXY;
export const UNKNOWN = '01890000-0000-7000-8000-000000000000';

const scenarios = [];

class Scenario {
    constructor(name) {
        this.name = name;
        this.results = [];
    }

    ok(isGood, title, found) {
        const details = isGood || found === undefined ? [] : [`# got: ${JSON.stringify(found)}`];
        this.results.push({ isGood: Boolean(isGood), title: `${this.name}: ${title}`, details });
    }

    is(found, wanted, title) {
        const isGood = isDeepStrictEqual(found, wanted);
        this.ok(isGood, title);
        if (!isGood) {
            this.results.at(-1).details = [`# got: ${JSON.stringify(found)}`,
                `# wanted: ${JSON.stringify(wanted)}`];
        }
    }

    // The error that a promise is rejected with; undefined when it is not.
    async errorOf(promise) {
        try {
            await promise;
        } catch (error) {
            return error;
        }
        return undefined;
    }
}

export function scenario(name, body) {
    scenarios.push({ name, body });
}

async function play({ name, body }) {
    const t = new Scenario(name);
    try {
        await body(t);
    } catch (error) {
        t.ok(false, 'came to its end', String(error.stack).slice(0, 800));
    }
    return t.results;
}

// AGENT_TEST_ONLY: the beginning of the names of the scenarios to play.
export async function playAll() {
    const wanted = scenarios.filter(
        ({ name }) => name.startsWith(process.env.AGENT_TEST_ONLY || ''));
    let count = 0;
    await Promise.all(wanted.map(async (one) => {
        for (const { isGood, title, details } of await play(one)) {
            count += 1;
            const lines = [`${isGood ? 'ok' : 'not ok'} ${count} - ${title}`, ...details];
            process.stdout.write(`${lines.join('\n')}\n`);
        }
    }));
    process.stdout.write(`1..${count}\n`);
}

// --- Steps -------------------------------------------------------------------

export function connect(options = {}) {
    return new sdk.Client({ apiUrl: serverUrl, ...options });
}

let proxied = 0;

// A client behind the proxy; its first responses are cut at those places.
export function connectCut(places, options = {}) {
    proxied += 1;
    const cut = ['js', proxied].join('') + ['', ...places].join(' ');
    return connect({ apiUrl: proxyUrl, defaultHeaders: { 'x-cut': cut }, ...options });
}

export const say = (content) => ({ messages: [{ role: 'user', content }] });

export async function newThread(client) {
    return (await client.threads.create()).thread_id;
}

export async function collect(stream) {
    const events = [];
    for await (const event of stream) {
        events.push(event);
    }
    return events;
}

export const kinds = (events) => [...new Set(events.map(({ event }) => event))].sort();
export const ids = (events) => events.map(({ id }) => Number(id));
export const upTo = (count) => Array.from({ length: count }, (_, i) => i);
export const ofKind = (events, kind) => events.filter(({ event }) => event === kind)
    .map(({ data }) => data);

// Until the condition holds; the server tells of no such thing by itself.
export async function until(condition) {
    for (;;) {
        const value = await condition();
        if (value) {
            return value;
        }
        await new Promise((resolve) => { setTimeout(resolve, 20); });
    }
}
