// SPDX-License-Identifier: Apache-2.0
// The library's public suite for checkpointers, @langchain/langgraph-checkpoint-validation,
// on the runner's own. vitest's runner executes it in the runner's process, where
// the runs are whose checkpointer it tests.
import * as chai from 'chai';
import { ASYMMETRIC_MATCHERS_OBJECT, JestAsymmetricMatchers, JestChaiExpect, JestExtend } from '@vitest/expect';
import * as vitest from '@vitest/runner';
import { BaseCheckpointSaver, MemorySaver } from '@langchain/langgraph';
import { validate } from '@langchain/langgraph-checkpoint-validation';
import { nodeGraph, served, thread, Threads } from './held.mjs';

export { thread };

[JestExtend, JestChaiExpect, JestAsymmetricMatchers].forEach((plugin) => chai.use(plugin));
const expect = Object.assign((value, message) => chai.expect(value, message), chai.expect,
    globalThis[ASYMMETRIC_MATCHERS_OBJECT]);
// The first wrong value ends the test.
expect.soft = expect;
const { afterAll, afterEach, beforeAll, beforeEach, describe, it } = vitest;
Object.assign(globalThis, { afterAll, afterEach, beforeAll, beforeEach, describe, it, test: it, expect });

// Passes calls on to the runner's checkpointer, with the server's ids in place of
// the suite's names.
class Saver extends BaseCheckpointSaver {
    constructor(url, name) {
        super();
        this.threads = new Threads(url, name);
    }

    #ours(config) {
        const { configurable = {} } = config;
        const name = configurable.thread_id;
        return name === undefined ? config
            : { ...config, configurable: { ...configurable, thread_id: this.threads.idOf(name) } };
    }

    #theirs(config, name) {
        return config && { ...config, configurable: { ...config.configurable, thread_id: name } };
    }

    #tuple(found, name) {
        return found && { ...found, config: this.#theirs(found.config, name),
            ...(found.parentConfig ? { parentConfig: this.#theirs(found.parentConfig, name) } : {}) };
    }

    async #call(config, action) {
        const held = await this.threads.of(config.configurable?.thread_id ?? '');
        return held.enter(() => action(held.saver, held));
    }

    async getTuple(config) {
        const found = await this.#call(config, (saver) => saver.getTuple(this.#ours(config)));
        return this.#tuple(found, config.configurable?.thread_id);
    }

    async* list(config, options) {
        const name = config.configurable?.thread_id;
        let left = options?.limit;
        for (const one of name === undefined ? this.threads.names : [name]) {
            const own = { ...config, configurable: { ...config.configurable, thread_id: one } };
            const found = await this.#call(own, (saver) => collect(saver.list(this.#ours(own), { ...options, limit: left })));
            left = left === undefined ? left : left - found.length;
            yield* found.map((tuple) => this.#tuple(tuple, one));
        }
    }

    async put(config, checkpoint, metadata, versions) {
        const after = await this.#call(config, async (saver, held) => {
            const result = await saver.put(this.#ours(config), checkpoint, metadata, versions);
            if (!config.configurable.checkpoint_ns) {
                held.shown.set(checkpoint.id, { config: result, values: {}, next: [], tasks: [],
                    metadata: { source: 'loop', step: 0, parents: {} } });
            }
            return result;
        });
        return this.#theirs(after, config.configurable.thread_id);
    }

    async putWrites(config, writes, taskId, taskPath) {
        return this.#call(config, (saver) => saver.putWrites(this.#ours(config), writes, taskId, taskPath));
    }

    async deleteThread(name) {
        return this.threads.delete(name);
    }

    async getDeltaChannelHistory({ config, channels }) {
        return this.#call(config, (saver) => saver.getDeltaChannelHistory({ config: this.#ours(config), channels }));
    }

    getNextVersion(current) {
        return served.checkpointer.getNextVersion(current);
    }
}

async function collect(items) {
    const found = [];
    for await (const item of items) {
        found.push(item);
    }
    return found;
}

// --- Delta history: the same operations on the library's own saver -----------------

const CHANNELS = ['log', 'plain', 'never'];

// A chain with a fork: `log` changes in each step and has values in the second and the
// fifth, `plain` in all.
async function build(saver) {
    const configs = [];
    for (let step = 0; step < 8; step += 1) {
        const parent = step === 6 ? configs[3] : configs.at(-1);
        const values = { other: step, plain: 'first' };
        if (step === 1 || step === 4) {
            values.log = [{ seed: step, text: 's'.repeat(300) }, { seed: step, second: true }];
        }
        const changed = step === 0 ? ['log', 'other', 'plain'] : ['log', 'other'];
        const versions = Object.fromEntries(changed.map((name) => [name, step + 1]));
        const checkpoint = { v: 4, id: `1f1e75c${step}-0e05-6e41-bfff-0aba6e3a38bb`, ts: '2026-11-23T10:00:00.000Z',
            channel_values: values, channel_versions: { plain: 1, ...versions }, versions_seen: {} };
        const config = { configurable: { thread_id: 'delta', checkpoint_ns: '',
            ...(parent ? { checkpoint_id: parent.configurable.checkpoint_id } : {}) } };
        const counters = values.log ? {} : { counters_since_delta_snapshot: { log: [1, 1], never: [0, step] } };
        const after = await saver.put(config, checkpoint, { source: 'loop', step, parents: {}, ...counters }, versions);
        configs.push(after);
        for (const [task, path] of [['b', '~2'], ['a', '~3'], ['c', '~1']]) {
            await saver.putWrites(after, [['log', [{ task, step }]], ['other', 1], ['log', `${task} once more`],
                ['plain', { step }]], task, path);
        }
    }
    return configs;
}

function deltaHistoryTests(createSaver) {
    describe('delta', () => {
        const theirs = new MemorySaver();
        const last = { configurable: { thread_id: 'delta', checkpoint_ns: '' } };
        let ours;
        let configs;
        beforeAll(async () => {
            ours = createSaver();
            configs = await build(ours);
            await build(theirs);
        });
        afterAll(() => ours.threads.releaseAll());
        const history = (saver, config, channels = CHANNELS) => saver.getDeltaChannelHistory({ config, channels });
        it.each([0, 1, 2, 3, 4, 5, 6, 7])("step %i as the library's own saver", async (step) => {
            expect(await history(ours, configs[step])).toEqual(await history(theirs, configs[step]));
        });
        it.each([0, 1, 2, 3, 4, 5, 6, 7])('step %i as a walk over the parents', async (step) => {
            const walked = await BaseCheckpointSaver.prototype.getDeltaChannelHistory.call(
                ours, { config: configs[step], channels: CHANNELS });
            expect(await history(ours, configs[step])).toEqual(walked);
        });
        it('without an id it is that of the last checkpoint', async () => {
            expect(await history(ours, last)).toEqual(await history(ours, configs[7]));
        });
        it('a thread without checkpoints has none', async () => {
            const none = { configurable: { thread_id: 'none', checkpoint_ns: '' } };
            expect(await history(ours, none, ['log'])).toEqual({ log: { writes: [] } });
        });
        it('more channels than a request may have', async () => {
            const many = Array.from({ length: 100 }, (_, i) => `channel ${i}`);
            expect(Object.keys(await history(ours, configs[7], many))).toEqual(many);
        });
        it('a run that begins later reads the same', async () => {
            const before = await history(ours, configs[7]);
            await ours.threads.release('delta');
            expect(await history(ours, last)).toEqual(before);
        });
    });
}

// The environment of vitest's runner: it asks for no more.
class Runner {
    config = {
        root: '/', setupFiles: [], name: '', passWithNoTests: false, testNamePattern: undefined, allowOnly: true,
        sequence: { shuffle: false, concurrent: false, seed: 1, hooks: 'stack', setupFiles: 'list' }, maxConcurrency: 1,
        // The test that executes this waits as long as it takes.
        testTimeout: 0, hookTimeout: 0, retry: 0, includeTaskLocation: false, tags: [], strictTags: false,
    };

    constructor(define) {
        this.define = define;
    }

    importFile(_, source) {
        if (source === 'collect') {
            this.define();
        }
    }
}

// {name, state, message} of each test of a suite.
function resultsOf(task, path = []) {
    if (task.tasks) {
        const inner = task.tasks.flatMap((each) => resultsOf(each, [...path, each.name]));
        return task.result?.errors ? [...inner, { name: path.join(' '), state: 'fail', message: textOf(task) }] : inner;
    }
    return [{ name: path.join(' '), state: task.result?.state ?? task.mode, message: textOf(task) }];
}

function textOf(task) {
    return task.result?.errors?.map(({ stack, message, ...values }) => [stack ?? message,
        ...('expected' in values ? [`expected ${values.expected}`, `actual ${values.actual}`] : [])].join('\n')).join('\n') ?? null;
}

async function executeSuite({ url }) {
    let savers = 0;
    const createSaver = () => new Saver(url, `suite ${savers += 1}`);
    const files = await vitest.startTests(['/suite'], new Runner(() => {
        validate({
            checkpointerName: 'the runner',
            createCheckpointer: createSaver,
            destroyCheckpointer: (saver) => saver.threads.releaseAll(),
        });
        deltaHistoryTests(createSaver);
    }));
    return { results: files.flatMap((file) => resultsOf(file)) };
}

export const suite = nodeGraph('execute', executeSuite);
