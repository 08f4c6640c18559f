// SPDX-License-Identifier: Apache-2.0
// Scenarios that are executed concurrently, each of which prints its TAP at once;
// and the steps that most of them begin with. For Node and for browsers.

export const UNKNOWN = '01890000-0000-7000-8000-000000000000';

// name, Client, serverUrl, proxyUrl; set before any scenario is read.
const setting = {};

export function use(given) {
    Object.assign(setting, given);
}

// Compares data of JSON: the order of members does not matter.
function same(one, other) {
    if (typeof one !== 'object' || typeof other !== 'object' || one === null || other === null) {
        return one === other;
    }
    const keys = Object.keys(one);
    return Array.isArray(one) === Array.isArray(other)
        && keys.length === Object.keys(other).length
        && keys.every((key) => key in other && same(one[key], other[key]));
}

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
        const isGood = same(found, wanted);
        this.ok(isGood, title);
        if (!isGood) {
            this.results.at(-1).details = [`# got: ${JSON.stringify(found)}`,
                `# wanted: ${JSON.stringify(wanted)}`];
        }
    }

    // The error with which the promise is rejected; undefined if it is fulfilled.
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
        t.ok(false, 'the scenario completes', `${error.stack.slice(0, 600)} ${error.cause || ''}`);
    }
    return t.results;
}

// Plays the scenarios whose names begin with one of `names`, at most `atOnce` of
// them concurrently, and passes each line to print().
export async function playAll(print, { names = [''], atOnce = Infinity } = {}) {
    const waiting = scenarios.filter(({ name }) => names.some((word) => name.startsWith(word)));
    let count = 0;
    const player = async () => {
        for (let one = waiting.shift(); one; one = waiting.shift()) {
            for (const { isGood, title, details } of await play(one)) {
                count += 1;
                print([`${isGood ? 'ok' : 'not ok'} ${count} - ${title}`, ...details].join('\n'));
            }
        }
    };
    await Promise.all(Array.from({ length: Math.min(atOnce, waiting.length) }, player));
    print(`1..${count}`);
}

// --- Steps -------------------------------------------------------------------

// A client of the server; prefix: the AgentPrefix of the API.
export function connect({ prefix = '', ...options } = {}) {
    return new setting.Client({ apiUrl: setting.serverUrl + prefix, ...options });
}

let proxied = 0;

// A client behind the proxy, which cuts its first responses after that many bytes.
export function connectCut(places, prefix = '') {
    proxied += 1;
    return connect({
        apiUrl: setting.proxyUrl + prefix,
        defaultHeaders: { 'x-cut': [`${setting.name}${proxied}`, ...places].join(' ') },
    });
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

// Polls until the condition holds; the server sends no event for it.
export async function until(condition) {
    for (;;) {
        const value = await condition();
        if (value) {
            return value;
        }
        await new Promise((resolve) => { setTimeout(resolve, 20); });
    }
}

// Waits until the run has saved its input: cancelled earlier, it leaves no state.
export function begun(client, threadId, runId) {
    return until(async () => (await client.threads.getState(threadId)).metadata.run_id === runId);
}
