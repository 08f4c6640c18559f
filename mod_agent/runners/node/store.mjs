// SPDX-License-Identifier: Apache-2.0
// The library's store, over requests of the run in whose asynchronous calls it is used, or, where
// code has left these, as with a queue of its own, of the run that was given the object.
import { RunnerError } from './errors.mjs';
import { currentRun } from './log.mjs';
import { PAGE, toOp } from './store_ops.mjs';

const OPS_MAX = 1000;
// Of a request, which may have 4 MiB; one value has a quarter of that at most.
const BATCH_BYTES = 2097152;

// The operation for the page of a search or a list that begins after so many results.
function pageOf(op, count) {
    return op.limit > PAGE
        ? { ...op, limit: Math.min(op.limit - count, PAGE), offset: (op.offset ?? 0) + count } : op;
}

// Operations in requests of legal length.
function groups(ops) {
    const found = [];
    let bytes = 0;
    for (const op of ops) {
        const length = Buffer.byteLength(JSON.stringify(op)) + 1;
        if (found.length === 0 || found.at(-1).length === OPS_MAX || bytes + length > BATCH_BYTES) {
            found.push([]);
            bytes = 0;
        }
        found.at(-1).push(op);
        bytes += length;
    }
    return found;
}

function itemOf(item) {
    return item && {
        namespace: item.namespace, key: item.key, value: item.value,
        createdAt: new Date(item.created_at), updatedAt: new Date(item.updated_at),
    };
}

function resultOf(operation, result) {
    switch (operation.op) {
    case 'get':
        return itemOf(result);
    case 'search':
        return result.items.map((item) => ({ ...itemOf(item), score: item.score ?? undefined }));
    case 'list':
        return result.namespaces;
    default:
        return undefined;
    }
}

// The results of all parts of a reply; a search whose items did not fit goes on.
async function request(output, ops) {
    const args = { ops };
    const results = [];
    let isOpen = false;
    let cursor = null;
    do {
        const reply = await output.request('store', args, cursor);
        const part = [...reply.result.results];
        if (isOpen && part.length > 0) {
            const rest = part.shift();
            results.at(-1).items.push(...rest.items);
            isOpen = rest.more === true;
        }
        results.push(...part);
        isOpen = part.length > 0 ? part.at(-1)?.more === true : isOpen;
        cursor = reply.cursor;
    } while (cursor !== null);
    return results;
}

// Adds the pages after the first one to the result of a search or a list.
async function readPages(output, op, result) {
    const found = result?.items ?? result?.namespaces;
    for (let count = PAGE; op.limit > count && found.length === count; count += PAGE) {
        const [next] = await request(output, [pageOf(op, count)]);
        found.push(...(next.items ?? next.namespaces));
    }
}

// Operations as the protocol has them. For a namespace it raises the library's own error, for
// which the application may test.
async function operationsOf(operations, library) {
    try {
        return operations.map(toOp);
    } catch (error) {
        throw error.name === 'InvalidNamespaceError' ? await ownError(error, library) : error;
    }
}

// The library does not export the class: it is that of its error for an empty namespace.
async function ownError(error, library) {
    const put = library.BaseStore.prototype.put.bind({ batch: () => [] });
    const { constructor: Own } = await put([], '', {}).catch((caught) => caught);
    return new Own(error.message);
}

// A store for one build of the library.
export function makeStore(library) {
    class Store extends library.BaseStore {
        constructor(run) {
            super();
            this.run = run;
        }

        of(run) {
            return new Store(run);
        }

        async batch(operations) {
            const run = currentRun.getStore() ?? this.run;
            if (!run) {
                throw new RunnerError('RuntimeError', 'the store can be used by a run only');
            }
            const ops = await operationsOf(operations, library);
            const results = [];
            for (const group of groups(ops.map((op) => pageOf(op, 0)))) {
                results.push(...await request(run.output, group));
            }
            for (const [i, op] of ops.entries()) {
                await readPages(run.output, op, results[i]);
            }
            return results.map((result, i) => resultOf(ops[i], result));
        }
    }
    return new Store();
}
