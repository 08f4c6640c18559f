// SPDX-License-Identifier: Apache-2.0
// Threads of a suite, each with a run that is held open, whose checkpointer the suite uses.
import { AsyncLocalStorage } from 'node:async_hooks';
import { createHash } from 'node:crypto';
import { StateGraph, StateSchema } from '@langchain/langgraph';
import { z } from 'zod';

// Runs that are held at a time; the one that was used longest ago ends first.
const MOST_HELD = 20;

export const State = new StateSchema({ url: z.string().optional(), results: z.array(z.any()).optional() });

export function nodeGraph(name, node) {
    return new StateGraph(State).addNode(name, node).addEdge('__start__', name).addEdge(name, '__end__').compile();
}

// The id of a thread -> who waits for its run.
const begun = new Map();

// A graph whose run waits for the suite, then shows the checkpoints that it has put.
export const thread = nodeGraph('wait', (state) => state);
// The copy that the runner serves, which has the checkpointer.
export let served;
thread.withConfig = (config) => {
    served = Object.getPrototypeOf(thread).withConfig.call(thread, config);
    return served;
};
thread.stream = async function* stream(_input, { configurable }) {
    let release;
    const released = new Promise((resolve) => {
        release = resolve;
    });
    // enter: calls a function as the code of this run does.
    const held = { saver: this.checkpointer, enter: AsyncLocalStorage.snapshot(), release, shown: new Map() };
    begun.get(configurable.thread_id)(held);
    await released;
    for (const payload of held.shown.values()) {
        yield [[], 'checkpoints', payload];
    }
};

// The threads of a suite by its own names.
export class Threads {
    #url;
    #prefix;
    // Name -> promise of the run; in the order of their last use.
    #held = new Map();
    #names = new Set();

    constructor(url, prefix) {
        this.#url = url;
        this.#prefix = prefix;
    }

    get names() {
        return [...this.#names];
    }

    idOf(name) {
        const hex = createHash('sha256').update(`${this.#prefix} ${name}`).digest('hex');
        return [hex.slice(0, 8), hex.slice(8, 12), `8${hex.slice(13, 16)}`, `8${hex.slice(17, 20)}`, hex.slice(20, 32)].join('-');
    }

    async of(name) {
        const held = this.#held.get(name) ?? this.#begin(name);
        this.#held.delete(name);
        this.#held.set(name, held);
        this.#names.add(name);
        if (this.#held.size > MOST_HELD) {
            await this.release(this.#held.keys().next().value);
        }
        return held;
    }

    async #begin(name) {
        const id = this.idOf(name);
        const begins = new Promise((resolve) => {
            begun.set(id, resolve);
        });
        await this.#ask('POST', '/threads', { thread_id: id, if_exists: 'do_nothing' });
        const run = await this.#ask('POST', `/threads/${id}/runs`, { assistant_id: 'thread', input: {} });
        return Object.assign(await begins, { runId: run.run_id });
    }

    // Ends the run of a thread.
    async release(name) {
        const held = await this.#held.get(name);
        this.#held.delete(name);
        if (held) {
            held.release();
            const path = `/threads/${this.idOf(name)}/runs/${held.runId}`;
            await this.#ask('GET', `${path}/join`);
            const { status } = await this.#ask('GET', path);
            if (status !== 'success') {
                throw new Error(`the run of ${name} ended with ${status}`);
            }
        }
    }

    async releaseAll() {
        await Promise.all([...this.#held.keys()].map((name) => this.release(name)));
    }

    async delete(name) {
        await this.release(name);
        this.#names.delete(name);
        await this.#ask('DELETE', `/threads/${this.idOf(name)}`);
    }

    async #ask(method, path, body) {
        const answer = await fetch(this.#url + path, { method, headers: { 'content-type': 'application/json' },
            ...(body === undefined ? {} : { body: JSON.stringify(body) }) });
        const text = await answer.text();
        if (!answer.ok) {
            throw new Error(`${method} ${path}: ${answer.status} ${text}`);
        }
        return text ? JSON.parse(text) : null;
    }
}
