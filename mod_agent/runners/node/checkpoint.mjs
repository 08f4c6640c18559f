// SPDX-License-Identifier: Apache-2.0
// The rendered checkpoints of a run: what clients see of each step, with the
// values that differ from those of the parent, and the tasks.
import { render } from './json.mjs';
import { stampOf } from './known.mjs';

// Members whose value would be taken for a difference.
const MARKS = new Set(['$list', '$same', '$value']);
// Namespaces whose last values are kept.
const MOST_NAMESPACES = 256;

function isMark(value) {
    if (value === null || typeof value !== 'object' || Array.isArray(value)) {
        return false;
    }
    const names = Object.keys(value);
    return names.length === 1 && MARKS.has(names[0]);
}

// A value to compare later ones with: of a list, that of each element.
function snapshot(value) {
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
        return { $list: { keep, items: value.slice(keep).map(render) } };
    }
    const plain = render(value);
    return isMark(plain) ? { $value: plain } : plain;
}

// {thread_id, checkpoint_ns, checkpoint_id} of a configuration, or null.
export function positionOf(config) {
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
    return typeof error === 'object' ? `${error.name ?? 'Error'}: ${error.message ?? ''}` : String(error);
}

// A task as the API shows it.
export function renderTask(task) {
    return render({
        id: task.id, name: task.name, path: task.path ?? null, error: errorText(task.error),
        interrupts: task.interrupts ?? [], checkpoint: positionOf(task.state), state: null,
        result: task.result ?? null,
    });
}

export function isObject(value) {
    return value !== null && typeof value === 'object' && !Array.isArray(value);
}

// A state without names, as the functional API has it, is shown under one.
function membersOf(values) {
    return isObject(values) ? values : values === null || values === undefined ? {} : { __root__: values };
}

export class Checkpoints {
    #output;
    // ns -> {id, values: name -> snapshot} of the checkpoint that was sent last.
    #last = new Map();

    constructor(output) {
        this.#output = output;
    }

    // The id of the last checkpoint of a namespace whose values are known here.
    lastOf(ns) {
        return this.#last.get(ns)?.id;
    }

    // A root checkpoint that the server has already. hasMore: `values` are those of all
    // channels, also of some that are not shown.
    remember(id, values, hasMore = false) {
        this.#keep('', id, values, hasMore);
    }

    #keep(ns, id, values, hasMore = false) {
        this.#last.delete(ns);
        this.#last.set(ns, { id, hasMore, values: Object.fromEntries(
            Object.entries(membersOf(values)).map(([name, value]) => [name, snapshot(value)])) });
        if (this.#last.size > MOST_NAMESPACES) {
            const oldest = [...this.#last.keys()].find((name) => name !== '');
            this.#last.delete(oldest);
        }
    }

    // Whether the last checkpoint of the root graph has these values.
    has(values) {
        const last = this.#last.get('');
        const names = Object.keys(values);
        return last !== undefined && (last.hasMore || names.length === Object.keys(last.values).length)
            && names.every((name) => name in last.values && isSame(last.values[name], values[name]));
    }

    // Sends a checkpoint: {ns, id, parent, values, next, tasks, metadata}.
    async send({ ns, id, parent, values, next, tasks, metadata }) {
        const last = this.#last.get(ns);
        const before = last && last.id === parent ? last.values : {};
        const differences = {};
        for (const [name, value] of Object.entries(membersOf(values))) {
            if (value !== undefined) {
                differences[name] = difference(before[name], value);
            }
        }
        const members = {
            ns, checkpoint_id: id, parent, values: differences, next: next.map(String),
            tasks: tasks.map(renderTask),
            metadata: { source: metadata.source, step: metadata.step, writes: render(metadata.writes ?? null),
                parents: render(metadata.parents ?? {}) },
            opaque: null,
        };
        this.#keep(ns, id, values);
        await this.#output.send('checkpoint', members);
    }
}
