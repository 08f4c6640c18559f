// SPDX-License-Identifier: Apache-2.0
// The library's stream of a run as events of the modes that clients requested. Its checkpoints
// and the ends of its tasks go to states.mjs first: events refer to their values.
import { checkpointOf } from './checkpoints.mjs';
import { RunnerError } from './errors.mjs';
import { isObject, render } from './jsontext.mjs';
import { Messages, messagesOf } from './messages.mjs';
import { Metadata } from './metadata.mjs';
import { States } from './states.mjs';

const NAME_BYTES_MAX = 4096;
const BAD_NAME = /["\\\p{Cc}\p{Cs}\u2028\u2029]|^ | $/u;
// Modes of the library; the others are made of these.
const LIBRARY_MODES = ['values', 'updates', 'custom', 'debug', 'tools'];

// Modes that show what a run does: a value that JSON cannot hold does not end it.
const LENIENT_MODES = new Set(['events', 'tasks', 'debug', 'messages']);

// Chunks of these modes come after the checkpoint of their step. Chunks of other modes may come
// between the values of a step and its checkpoint, since the library executes steps ahead.
const STEP_MODES = new Set(['tasks', 'updates', 'debug']);

// The modes with which the library streams for those that clients requested.
export function libraryModes(requested) {
    const modes = new Set(['checkpoints', 'tasks', ...requested.filter((mode) => LIBRARY_MODES.includes(mode))]);
    if (requested.includes('messages') || requested.includes('messages-tuple')) {
        modes.add('messages');
    }
    return [...modes];
}

// A configuration as clients see it.
function publicConfig(config) {
    if (!config) {
        return config ?? null;
    }
    const { callbacks: _, ...rest } = config;
    const configurable = Object.entries(config.configurable ?? {}).filter(([name]) => !name.startsWith('__'));
    return { ...rest, configurable: Object.fromEntries(configurable) };
}

function taskEvent({ state, ...task }) {
    const checkpoint = checkpointOf(state);
    return checkpoint ? { ...task, checkpoint } : task;
}

// A checkpoint of the library as the modes checkpoints and debug show it.
function checkpointEvent({ parentConfig, ...payload }) {
    return {
        ...payload, config: publicConfig(payload.config), parent_config: publicConfig(parentConfig),
        tasks: payload.tasks.map(taskEvent),
        checkpoint: checkpointOf(payload.config), parent_checkpoint: checkpointOf(parentConfig),
    };
}

// The protocol has rules for the name of an event, which contains names of nodes.
function eventName(mode, namespace) {
    const name = [mode, ...namespace].join('|');
    if (BAD_NAME.test(name) || Buffer.byteLength(name) > NAME_BYTES_MAX) {
        throw new RunnerError('NotRenderedError', `a name of more than ${NAME_BYTES_MAX} bytes, `
            + `or with characters that are not admitted: ${JSON.stringify(name.slice(0, 80))}`);
    }
    return name;
}

// The metadata of a message of a subgraph as one of its node in the root graph: without those of
// the model's call.
function metadataOfNode(metadata, { name, id }, step) {
    const own = Object.entries(metadata ?? {}).filter(([member]) => !/^(?:langgraph|ls)_/.test(member));
    const ns = `${name}:${id}`;
    return {
        ...Object.fromEntries(own), langgraph_step: step, langgraph_node: name, langgraph_checkpoint_ns: ns, checkpoint_ns: ns };
}

function areSame(values, sent) {
    return isObject(sent) && Object.keys(values).length === Object.keys(sent).length
        && Object.entries(values).every(([name, value]) => name in sent && Object.is(sent[name], value));
}

export class Stream {
    #run;
    #modes;
    #subgraphs;
    #checkpoints;
    #states;
    #messages;
    #metadata;
    // Values of the root graph whose checkpoint did not come yet.
    #values;
    // Subgraphs that have begun and not ended.
    #open = new Set();
    // The data of the event `command`.
    #command;
    // For clients without subgraphs: of each task of the root the messages of its subgraphs, id -> metadata.
    #below = new Map();
    // Of the last checkpoint of the root.
    #step = -1;

    // run: output, records, checkpoints, commands, message; configurable(), metadata(): of the library's
    // configuration; readState(id): a state of the graph; noteFailure(error): the reason of its end.
    constructor(run) {
        this.#run = run;
        this.#modes = new Set(run.message.stream_modes);
        this.#subgraphs = run.message.stream_subgraphs === true;
        this.#checkpoints = run.checkpoints;
        this.#states = new States(run);
        this.#metadata = new Metadata(run.configurable(), run.metadata());
        this.#messages = new Messages((name, data) => this.emit(name, [], data));
    }

    // A chunk of the library: [namespace, mode, payload]. Most need no wait, and a promise takes time in each:
    // returns one when the caller should wait.
    take(chunk) {
        const [namespace, mode] = chunk;
        if (namespace.length > 0 && this.#modes.has('lifecycle')) {
            return this.#beginSubgraph(namespace).then(() => this.#takeInOrder(chunk));
        }
        if (namespace.length === 0 && this.#values && STEP_MODES.has(mode)) {
            return this.#sendValues().then(() => this.#takeInOrder(chunk));
        }
        return this.#takeInOrder(chunk);
    }

    #takeInOrder([namespace, mode, payload]) {
        switch (mode) {
        case 'checkpoints':
            return this.#takeCheckpoint(namespace, payload);
        case 'tasks':
            return this.#takeTask(namespace, payload);
        case 'values':
            return this.#takeValues(namespace, payload);
        case 'messages':
            return this.#takeMessage(namespace, payload);
        case 'debug':
            return this.#takeDebug(namespace, payload);
        case 'events':
            return this.emit(mode, namespace, { ...payload, metadata: this.#metadata.bounded(payload.metadata) });
        case 'updates':
            return this.#takeUpdates(namespace, payload);
        default:
            return this.emit(mode, namespace, payload);
        }
    }

    #isRequested(mode, namespace) {
        return this.#modes.has(mode) && (namespace.length === 0 || this.#subgraphs);
    }

    // Sends an event if clients requested it. Like the output, returns a promise when the caller should wait.
    emit(mode, namespace, data, reference) {
        const [requested] = mode.split('/');
        if (!this.#isRequested(requested, namespace)) {
            return undefined;
        }
        return this.#run.output.send('event', {
            event: eventName(mode, namespace), ...reference,
            ...(data === undefined ? {} : { data: render(data, LENIENT_MODES.has(requested)) }) });
    }

    // --- Checkpoints and values ----------------------------------------------

    async #takeCheckpoint(namespace, payload) {
        // Newer libraries send a summary beside it.
        if (!payload || !('values' in payload) || !Array.isArray(payload.tasks)) {
            return;
        }
        await this.#states.take(namespace, payload);
        if (namespace.length === 0) {
            this.#step = payload.metadata?.step ?? this.#step;
        }
        if (namespace.length === 0 && this.#values) {
            await this.#sendValues(payload.values);
        }
        if (!this.#isRequested('checkpoints', namespace)) {
            return;
        }
        const data = checkpointEvent(payload);
        const id = payload.config?.configurable?.checkpoint_id;
        await (this.#isReferable(namespace, id, payload.values, payload.values)
            ? this.emit('checkpoints', namespace, { ...data, values: null }, { checkpoint_id: id, path: ['values'] })
            : this.emit('checkpoints', namespace, data));
    }

    // sent: the values object of the checkpoint that was sent just now, if any. If it is the
    // same object, it counts as equal, even if the next node has mutated values in it.
    #isReferable(namespace, id, values, sent) {
        return namespace.length === 0 && id !== undefined && id === this.#checkpoints.lastId('')
            && isObject(values) && (areSame(values, sent) || this.#checkpoints.has(values));
    }

    async #takeUpdates(namespace, payload) {
        if (namespace.length === 0 && payload && '__interrupt__' in payload) {
            await this.#states.ensureHead();
        }
        await this.emit('updates', namespace, payload);
    }

    #takeValues(namespace, payload) {
        if (namespace.length > 0) {
            return this.emit('values', namespace, payload);
        }
        if (payload && typeof payload === 'object' && '__interrupt__' in payload) {
            return this.#sendInterrupt(payload);
        }
        this.#values = payload;
        return undefined;
    }

    async #sendInterrupt(payload) {
        await this.#states.ensureHead();
        const id = this.#checkpoints.lastId('');
        const reference = id === undefined ? {} : { checkpoint_id: id, path: [] };
        await this.emit('values', [], { __interrupt__: payload.__interrupt__ }, reference);
    }

    async #sendValues(sent) {
        const values = this.#values;
        this.#values = undefined;
        if (!this.#isReferable([], this.#checkpoints.lastId(''), values, sent)) {
            await this.#states.ensureHead();
        }
        const id = this.#checkpoints.lastId('');
        await (this.#isReferable([], id, values, sent)
            ? this.emit('values', [], undefined, { checkpoint_id: id })
            : this.emit('values', [], values));
    }

    // The end of the library's stream.
    async finish() {
        await this.#states.sendHead();
        if (this.#values) {
            await this.#sendValues();
        }
        await this.#messages.end();
        await this.#states.finish();
        if (this.#command) {
            await this.#run.output.send('event', { event: 'command', data: render(this.#command) });
        }
    }

    // Its end with an error, or by a cancel: the library saves the step at whose end it fails, and does
    // not stream it.
    async fail() {
        await this.#states.sendHead();
        await this.#messages.end();
        await this.#states.finish();
    }

    // After either end: what writes of the run have changed in checkpoints that stay as they were sent.
    async sendWritten() {
        try {
            await this.#states.sendUpdate();
        } finally {
            await this.#states.sendPending();
        }
    }

    // --- Tasks, subgraphs, messages ------------------------------------------

    async #takeTask(namespace, payload) {
        const isEnd = 'result' in payload || 'error' in payload;
        const command = isEnd && namespace.length === 0 ? this.#run.commands.of(payload.id) : undefined;
        this.#command ??= command;
        if (command && payload.error) {
            // No error: the caller's graph goes on from there.
            return this.#takeTask(namespace, { ...payload, error: null });
        }
        if (isEnd) {
            const own = [...namespace, `${payload.name}:${payload.id}`];
            if (this.#open.size > 0) {
                await this.#endSubgraphs(own, payload);
            }
            if (this.#modes.has('messages')) {
                await this.#messages.endTask(own.join('|'), payload.result, Boolean(payload.error));
            }
            if (this.#below.size > 0 && namespace.length === 0) {
                await this.#takeReturned(own[0], payload);
            }
            const wait = this.#states.endTask(namespace, payload);
            if (wait) {
                await wait;
            }
        }
        return this.#isRequested('tasks', namespace) ? this.emit('tasks', namespace, taskEvent(payload)) : undefined;
    }

    async #beginSubgraph(namespace) {
        const ns = namespace.join('|');
        if (this.#open.has(ns)) {
            return;
        }
        this.#open.add(ns);
        await this.#lifecycle('started', namespace);
    }

    async #endSubgraphs(namespace, task) {
        // The namespaces of several graphs that one task calls are numbered.
        const ns = namespace.join('|');
        for (const open of [...this.#open].filter((name) => name === ns || name.startsWith(`${ns}|`))) {
            this.#open.delete(open);
            const event = task.error ? 'failed' : task.interrupts?.length > 0 ? 'interrupted' : 'completed';
            await this.#lifecycle(event, open.split('|'), task.error ? { error: task.error.message ?? String(task.error) } : {});
        }
    }

    async #lifecycle(event, namespace, more = {}) {
        await this.#run.output.send('event', {
            event: eventName('lifecycle', namespace), data: render({ event, namespace, ...more }) });
    }

    async #takeMessage(namespace, [message, metadata]) {
        // Older libraries give the namespace of the task, not that of its graph.
        const task = metadata?.langgraph_checkpoint_ns;
        const own = task !== undefined && namespace.join('|') === task ? namespace.slice(0, -1) : namespace;
        if (own.length === 0 || this.#subgraphs) {
            await this.#showMessage(own, message, metadata);
        } else if (message.id) {
            const below = this.#below.get(own[0]) ?? new Map();
            this.#below.set(own[0], below.set(message.id, metadata));
        }
    }

    async #showMessage(namespace, message, metadata, isWhole = false) {
        const known = Object.entries(this.#metadata.bounded(metadata) ?? {}).filter(([name]) => !name.startsWith('__'));
        const shown = Object.fromEntries(known);
        if (this.#modes.has('messages-tuple')) {
            await this.#run.output.send('event', {
                event: eventName('messages', namespace), data: render([message, shown], true) });
        }
        if (this.#modes.has('messages')) {
            await this.#messages.take(message, shown, isWhole);
        }
    }

    // Without subgraphs, the library gives the messages of a subgraph as those that its node returns.
    async #takeReturned(ns, task) {
        const below = this.#below.get(ns);
        this.#below.delete(ns);
        for (const [id, message] of below && !task.error ? messagesOf(task.result) : []) {
            if (below.has(id)) {
                await this.#showMessage([], message, metadataOfNode(below.get(id), task, this.#step + 1), true);
            }
        }
    }

    async #takeDebug(namespace, chunk) {
        if (chunk.type !== 'checkpoint') {
            return this.emit('debug', namespace, { ...chunk, payload: taskEvent(chunk.payload) });
        }
        const payload = checkpointEvent(chunk.payload);
        const id = chunk.payload.config?.configurable?.checkpoint_id;
        if (this.#isReferable(namespace, id, chunk.payload.values)) {
            return this.emit('debug', namespace, { ...chunk, payload: { ...payload, values: null } },
                { checkpoint_id: id, path: ['payload', 'values'] });
        }
        return this.emit('debug', namespace, { ...chunk, payload });
    }
}
