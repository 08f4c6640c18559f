// SPDX-License-Identifier: Apache-2.0
// The rendered checkpoints of a run: what clients see of each step, with the
// values that differ from those of the parent, and the tasks.
import { RunnerError, describeError } from './errors.mjs';
import { isObject, render } from './jsontext.mjs';
import { keepNewest } from './recent.mjs';
import { stampOf } from './unchanged.mjs';
import { cleanText } from './text.mjs';

// The format of a checkpoint's records: those of the library for JavaScript.
const FORMAT = 'javascript';
const WRITERS = { python: 'a graph in Python' };
// Names of differences (PROTOCOL.md, "Values by difference").
const MARKS = new Set(['$list', '$same', '$value']);
// Checkpoints that were rendered at their put and not sent yet; beyond it the oldest is
// rendered again when it is sent.
const CAPTURED_MAX = 256;
// The id of the task under which the library keeps the writes of commands, which no node has made.
export const UPDATE_ID = '00000000-0000-0000-0000-000000000000';
// The id of the task as which the state with pending writes is sent.
const PENDING_ID = 'ffffffff-ffff-ffff-ffff-ffffffffffff';
// Channels of the library, which a state does not show. Those of edges have no values.
const HIDDEN = /^__(?:start__|end__|input__|previous__|pregel_)/;

// Throws for a checkpoint that a built-in graph or a graph in another language has saved.
export function checkFormat(format) {
    if (format !== FORMAT) {
        const writer = format ? WRITERS[format] ?? 'another runner' : 'a built-in graph';
        throw new RunnerError('ForeignStateError',
            `${writer} has saved the state of the thread, which no graph in JavaScript can continue`);
    }
}

function isMark(value) {
    if (value === null || typeof value !== 'object' || Array.isArray(value)) {
        return false;
    }
    const names = Object.keys(value);
    return names.length === 1 && MARKS.has(names[0]);
}

// A value to compare later ones with: of a list, that of each element.
function stampsOf(value) {
    return Array.isArray(value) ? value.map(stampOf) : stampOf(value);
}

function sameElements(before, value) {
    let count = 0;
    while (count < before.length && count < value.length && Object.is(before[count], stampOf(value[count]))) {
        count += 1;
    }
    return count;
}

function isSame(before, value) {
    if (Array.isArray(value)) {
        return Array.isArray(before) && before.length === value.length
            && sameElements(before, value) === value.length;
    }
    return Object.is(before, stampOf(value));
}

function difference(before, value) {
    if (before !== undefined && isSame(before, value)) {
        return { $same: true };
    }
    if (Array.isArray(value) && Array.isArray(before)) {
        const keep = sameElements(before, value);
        return { $list: { keep, items: value.slice(keep).map((item) => render(item)) } };
    }
    const plain = render(value);
    return isMark(plain) ? { $value: plain } : plain;
}

// {thread_id, checkpoint_ns, checkpoint_id} of a configuration, or null.
export function checkpointOf(config) {
    const { thread_id: threadId, checkpoint_ns: ns = '', checkpoint_id: id } = config?.configurable ?? {};
    if (threadId === undefined) {
        return null;
    }
    return { thread_id: threadId, checkpoint_ns: ns, ...(id === undefined ? {} : { checkpoint_id: id }) };
}

function errorText(error) {
    if (error === undefined || error === null) {
        return null;
    }
    if (typeof error !== 'object') {
        return String(error);
    }
    const { error: name, message } = describeError(error);
    return `${name}: ${message}`;
}

// A task as the API shows it.
function taskLine(task) {
    return render({
        id: task.id, name: task.name, path: task.path ?? null, error: errorText(task.error),
        interrupts: task.interrupts ?? [], checkpoint: checkpointOf(task.state), state: null,
        result: task.result ?? null,
    });
}

// A state without names, as the functional API has it, is shown under one.
function valuesOf(values) {
    return isObject(values) ? values : values === null || values === undefined ? {} : { __root__: values };
}

// A channel that the state does not show may have a value that JSON cannot hold.
function captureMember(before, value) {
    try {
        return { value, difference: difference(before, value), snapshot: stampsOf(value) };
    } catch {
        return {};
    }
}

export class Checkpoints {
    #output;
    // ns -> {id, values: name -> snapshot} of the checkpoint that was sent last.
    #last = new Map();
    // The same of the one that was captured last.
    #newest = new Map();
    // ns and id -> {base, members: name -> {value, difference, snapshot}} of checkpoints
    // that were captured and not sent. base: the checkpoint from which they differ.
    #captured = new Map();
    // The ids of the tasks whose questions or own errors were sent last.
    #ended = new Set();

    constructor(output) {
        this.#output = output;
    }

    // The id of the last checkpoint of a namespace whose values are known here.
    lastId(ns) {
        return this.#last.get(ns)?.id;
    }

    // A root checkpoint that the server has already. hasMore: `values` are those of all
    // channels, also of some that are not shown.
    remember(id, values, hasMore = false) {
        const snapshots = Object.entries(valuesOf(values)).map(([name, value]) => [name, stampsOf(value)]);
        keepNewest(this.#last, '', { id, hasMore, values: Object.fromEntries(snapshots) });
    }

    // Renders the changes of a checkpoint at its put: the next nodes, which may mutate its
    // values, start before the stream delivers it. values: of all channels.
    capture(ns, id, parent, values) {
        const before = [this.#newest.get(ns), this.#last.get(ns)].find((last) => last !== undefined && last.id === parent);
        const members = {};
        const snapshots = {};
        for (const [name, value] of Object.entries(values)) {
            if (value !== undefined && !HIDDEN.test(name)) {
                members[name] = captureMember(before?.values[name], value);
                snapshots[name] = members[name].snapshot;
            }
        }
        keepNewest(this.#newest, ns, { id, values: snapshots });
        this.#captured.set(`${ns}\n${id}`, { base: before?.id, members });
        if (this.#captured.size > CAPTURED_MAX) {
            this.#captured.delete(this.#captured.keys().next().value);
        }
    }

    #takeCaptured(ns, id, last) {
        const entry = this.#captured.get(`${ns}\n${id}`);
        this.#captured.delete(`${ns}\n${id}`);
        return entry && (entry.base === undefined || entry.base === last?.id) ? entry.members : {};
    }

    // Whether the last checkpoint of the root graph has these values.
    has(values) {
        const last = this.#last.get('');
        const names = Object.keys(values);
        return last !== undefined && (last.hasMore || names.length === Object.keys(last.values).length)
            && names.every((name) => name in last.values && isSame(last.values[name], values[name]));
    }

    // Sends a checkpoint: {ns, id, parent, values, next, tasks, metadata}. Like the output, returns a
    // promise when the caller should wait.
    send({ ns, id, parent, values, next, tasks, metadata }) {
        const last = this.#last.get(ns);
        const before = last && last.id === parent ? last.values : {};
        const atPut = this.#takeCaptured(ns, id, last);
        const differences = {};
        const snapshots = {};
        for (const [name, value] of Object.entries(valuesOf(values))) {
            const member = atPut[name];
            if (member !== undefined && Object.is(member.value, value)) {
                differences[cleanText(name)] = member.difference;
                snapshots[name] = member.snapshot;
            } else {
                snapshots[name] = stampsOf(value);
                if (value !== undefined) {
                    differences[cleanText(name)] = difference(before[name], value);
                }
            }
        }
        const members = {
            ns, checkpoint_id: id, parent, values: differences, next: next.map(String),
            tasks: tasks.map(taskLine),
            metadata: { source: metadata.source, step: metadata.step, writes: render(metadata.writes ?? null),
                parents: render(metadata.parents ?? {}) },
            format: FORMAT,
        };
        // Throws for a line that is too long: then nothing can differ from this checkpoint.
        const sent = this.#output.send('checkpoint', members);
        keepNewest(this.#last, ns, { id, values: snapshots });
        return sent;
    }

    // The line `task` with what commands have changed in a root checkpoint: the library keeps it as writes to that
    // checkpoint. names: a Set of the channels of updates.
    updateLine(id, names, { values, next }) {
        const shown = Object.entries(valuesOf(values)).filter(([name, value]) => names.has(name) && value !== undefined);
        return { checkpoint_id: id, task: {
            id: UPDATE_ID, next: next.map(String),
            values: Object.fromEntries(shown.map(([name, value]) => [cleanText(name), render(value)])) } };
    }

    sendUpdate(line) {
        return this.#output.send('task', line);
    }

    // Sends the root checkpoint that was sent or remembered last with the pending writes of its
    // tasks, by difference from its own values.
    sendPending({ values, next }) {
        const { id, values: before } = this.#last.get('');
        const shown = Object.entries(valuesOf(values)).filter(([, value]) => value !== undefined);
        return this.#output.send('task', { checkpoint_id: id, task: {
            id: PENDING_ID, next: next.map(String),
            values: Object.fromEntries(shown.map(([name, value]) => [cleanText(name), difference(before[name], value)])) } });
    }

    // Sends those tasks of the root checkpoint that was sent or remembered last whose end the library has not streamed, or has
    // streamed as that of an abort: those which have asked, in this run or before it, and of those which have ended `lost`,
    // which have ended in a lost attempt. A task that has ended with its answer has its question too.
    sendEnds({ tasks, next }, lost) {
        const { id } = this.#last.get('');
        const waiting = new Set(next);
        const isWaiting = ({ name, result }) => waiting.has(name) && (result ?? null) === null;
        return tasks.filter((task) => !this.#ended.has(task.id))
            .filter((task) => (isWaiting(task) ? task.interrupts?.length > 0 : lost.has(task.id) && (task.error ?? null) === null))
            .map((task) => this.sendTask({ ns: '', id }, isWaiting(task) ? task : { ...task, interrupts: [] })).at(-1);
    }

    // Reports the end of a task, for a checkpoint that the server has.
    sendTask(checkpoint, payload) {
        if (!checkpoint) {
            return undefined;
        }
        const { id, error, interrupts, result } = taskLine(payload);
        const hasResult = error === null && interrupts.length === 0;
        const isAborted = error?.startsWith('AbortError:');
        this.#ended[interrupts.length > 0 || (error !== null && !isAborted) ? 'add' : 'delete'](id);
        return this.#output.send('task', {
            ns: checkpoint.ns, checkpoint_id: checkpoint.id,
            task: { id, error, interrupts, result: hasResult ? result : null } });
    }
}
