// SPDX-License-Identifier: Apache-2.0
// The library's store, over requests of the run in whose asynchronous calls it is
// used. PROTOCOL.md, "The store", has the operations and their limits.
import { RunnerError } from './errors.mjs';
import { render } from './json.mjs';
import { runs } from './log.mjs';

const MOST_OPS = 1000;
const MOST_BYTES = 4194304;
const MOST_VALUE_BYTES = 1048576;
const MOST_KEY_BYTES = 1024;
const MOST_LABELS = 32;

function checkNamespace(namespace, least) {
    const bytes = namespace.reduce((sum, label) => sum + Buffer.byteLength(String(label)), 0);
    if (namespace.length < least || namespace.length > MOST_LABELS || bytes > MOST_KEY_BYTES
        || namespace.some((label) => typeof label !== 'string' || label === '' || label.includes('.'))) {
        throw new RunnerError('InvalidNamespaceError',
            `a namespace has ${least} to ${MOST_LABELS} labels without periods, ${MOST_KEY_BYTES} bytes together`);
    }
    return namespace;
}

function checkKey(key) {
    const bytes = Buffer.byteLength(String(key));
    if (bytes === 0 || bytes > MOST_KEY_BYTES) {
        throw new RunnerError('ValueError', `a key of the store has 1 to ${MOST_KEY_BYTES} bytes`);
    }
    return String(key);
}

function putOp({ namespace, key, value }) {
    const plain = value === null || value === undefined ? null : render(value);
    if (Buffer.byteLength(JSON.stringify(plain)) > MOST_VALUE_BYTES) {
        throw new RunnerError('ValueError', `a value of the store has at most ${MOST_VALUE_BYTES} bytes`);
    }
    return { op: 'put', namespace: checkNamespace(namespace, 1), key: checkKey(key), value: plain };
}

function conditionOf(conditions, type) {
    const found = conditions.filter((condition) => condition.matchType === type);
    if (found.length > 1) {
        throw new RunnerError('ValueError', `namespaces are listed with one ${type} at most`);
    }
    return found[0]?.path ?? null;
}

function listOp({ matchConditions = [], maxDepth, limit, offset }) {
    return {
        op: 'list', prefix: conditionOf(matchConditions, 'prefix'), suffix: conditionOf(matchConditions, 'suffix'),
        max_depth: maxDepth ?? null, limit, offset,
    };
}

// An operation of the library as the protocol has it; the shapes tell them apart.
function toOp(operation) {
    if ('namespacePrefix' in operation) {
        const { namespacePrefix, filter, limit, offset, query } = operation;
        return {
            op: 'search', namespace_prefix: checkNamespace(namespacePrefix, 0),
            filter: filter ? render(filter) : null, limit, offset, query: query ?? null,
        };
    }
    if ('value' in operation) {
        return putOp(operation);
    }
    if ('key' in operation) {
        return { op: 'get', namespace: checkNamespace(operation.namespace, 1), key: checkKey(operation.key) };
    }
    return listOp(operation);
}

function toItem(item) {
    return item && {
        namespace: item.namespace, key: item.key, value: item.value,
        createdAt: new Date(item.created_at), updatedAt: new Date(item.updated_at),
    };
}

function fromResult(operation, result) {
    switch (operation.op) {
    case 'get':
        return toItem(result);
    case 'search':
        return result.items.map((item) => ({ ...toItem(item), score: item.score ?? undefined }));
    case 'list':
        return result.namespaces;
    default:
        return undefined;
    }
}

// The results of all parts of a reply; a search whose items did not fit goes on.
async function request(output, ops) {
    const args = { ops };
    if (Buffer.byteLength(JSON.stringify(args)) > MOST_BYTES) {
        throw new RunnerError('ValueError', `operations of the store have at most ${MOST_BYTES} bytes together`);
    }
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

// A store of a copy of the library.
export function makeStore(library) {
    class Store extends library.BaseStore {
        async batch(operations) {
            const run = runs.getStore();
            if (!run) {
                throw new RunnerError('ValueError', 'the store is used outside of a run');
            }
            const ops = operations.map(toOp);
            const results = [];
            for (let from = 0; from < ops.length; from += MOST_OPS) {
                results.push(...await request(run.output, ops.slice(from, from + MOST_OPS)));
            }
            return results.map((result, i) => fromResult(ops[i], result));
        }
    }
    return new Store();
}
