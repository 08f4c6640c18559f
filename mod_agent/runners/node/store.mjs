// SPDX-License-Identifier: Apache-2.0
// The library's store, over requests of the run in whose asynchronous calls it is
// used. PROTOCOL.md, "The store", has the operations and their limits.
import { isObject } from './checkpoint.mjs';
import { RunnerError } from './errors.mjs';
import { render } from './json.mjs';
import { runs } from './log.mjs';
import { cleanText } from './text.mjs';

const MOST_OPS = 1000;
// Of a request, which may have 4 MiB; one value has a quarter of that at most.
const BATCH_BYTES = 2097152;
const MOST_VALUE_BYTES = 1048576;
// As jsonb, which writes numbers without exponents.
const MOST_JSONB_BYTES = 4194304;
const MOST_KEY_BYTES = 1024;
const MOST_LABELS = 32;
const MOST_CONDITIONS = 32;
const MOST_FILTER_BYTES = 16384;
// Results of a search or a list; more are read page by page.
const PAGE = 1000;
const MOST_NUMBER = 2147483647;
const OPERATORS = new Set(['$eq', '$ne', '$gt', '$gte', '$lt', '$lte']);

// The checks of the server, made here first: many refused requests of a run are a breach,
// which ends the process.
function checkNamespace(namespace, least) {
    const isValid = Array.isArray(namespace) && namespace.length >= least && namespace.length <= MOST_LABELS
        && namespace.every((label) => typeof label === 'string' && label !== '' && !label.includes('.'));
    const labels = isValid ? namespace.map(cleanText) : [];
    if (!isValid || labels.reduce((sum, label) => sum + Buffer.byteLength(label), 0) > MOST_KEY_BYTES) {
        throw new RunnerError('InvalidNamespaceError',
            `a namespace has ${least} to ${MOST_LABELS} labels without periods, ${MOST_KEY_BYTES} bytes together`);
    }
    return labels;
}

function checkKey(key) {
    const text = cleanText(String(key));
    if (text === '' || Buffer.byteLength(text) > MOST_KEY_BYTES) {
        throw new RunnerError('ValueError', `a key of the store has 1 to ${MOST_KEY_BYTES} bytes`);
    }
    return text;
}

function checkNumber(number, least, name) {
    const isValid = Number.isInteger(number) && number >= least && number <= MOST_NUMBER;
    if (number !== undefined && number !== null && !isValid) {
        throw new RunnerError('ValueError', `${name} is an integer of at least ${least}`);
    }
    return number ?? undefined;
}

// The operators of a condition; a plain value means `$eq`.
function operatorsOf(condition) {
    const names = isObject(condition) ? Object.keys(condition) : [];
    return names.some((name) => name.startsWith('$')) ? names : ['$eq'];
}

// An upper bound of the bytes that the jsonb text has more than rendered JSON: spaces
// after commas and colons, and digits in place of exponents.
function addedBytes(value) {
    if (typeof value === 'number') {
        const [, exponent] = /e[+-]?(\d+)$/.exec(String(value)) ?? [];
        return exponent === undefined ? 0 : Number(exponent) + 2;
    }
    if (value === null || typeof value !== 'object') {
        return 0;
    }
    const members = Object.values(value);
    return members.reduce((sum, member) => sum + addedBytes(member),
        Array.isArray(value) ? members.length : 2 * members.length);
}

function checkFilter(filter) {
    const plain = filter ? render(filter) : null;
    if (plain === null) {
        return null;
    }
    const operators = isObject(plain) ? Object.values(plain).flatMap(operatorsOf) : [undefined];
    if (!operators.every((name) => OPERATORS.has(name))) {
        throw new RunnerError('ValueError', `a filter is an object, its operators are ${[...OPERATORS].join(' ')}`);
    }
    const bytes = Buffer.byteLength(JSON.stringify(plain)) + addedBytes(plain);
    if (operators.length > MOST_CONDITIONS || bytes > MOST_FILTER_BYTES) {
        throw new RunnerError('ValueError',
            `a filter has at most ${MOST_CONDITIONS} conditions and ${MOST_FILTER_BYTES} bytes`);
    }
    return plain;
}

function putOp({ namespace, key, value }) {
    const plain = value === null || value === undefined ? null : render(value);
    if (plain !== null && !isObject(plain)) {
        throw new RunnerError('ValueError', 'a value of the store is an object');
    }
    const bytes = Buffer.byteLength(JSON.stringify(plain));
    if (bytes > MOST_VALUE_BYTES || bytes + addedBytes(plain) > MOST_JSONB_BYTES) {
        throw new RunnerError('ValueError', `a value of the store has at most ${MOST_VALUE_BYTES} bytes, `
            + `and ${MOST_JSONB_BYTES} with numbers written without exponents`);
    }
    return { op: 'put', namespace: checkNamespace(namespace, 1), key: checkKey(key), value: plain };
}

function conditionOf(conditions, type) {
    const found = conditions.filter((condition) => condition.matchType === type);
    if (found.length > 1) {
        throw new RunnerError('ValueError', `namespaces are listed with one ${type} at most`);
    }
    return found.length === 1 ? checkNamespace(found[0].path, 0) : null;
}

function listOp({ matchConditions, maxDepth, limit, offset }) {
    const conditions = matchConditions ?? [];
    return {
        op: 'list', prefix: conditionOf(conditions, 'prefix'), suffix: conditionOf(conditions, 'suffix'),
        max_depth: checkNumber(maxDepth, 1, 'maxDepth'),
        limit: checkNumber(limit, 0, 'limit'), offset: checkNumber(offset, 0, 'offset'),
    };
}

// An operation of the library as the protocol has it; its kind follows from its members.
function toOp(operation) {
    if ('namespacePrefix' in operation) {
        const { namespacePrefix, filter, limit, offset } = operation;
        return {
            op: 'search', namespace_prefix: checkNamespace(namespacePrefix, 0), filter: checkFilter(filter),
            limit: checkNumber(limit, 0, 'limit'), offset: checkNumber(offset, 0, 'offset'),
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
        if (found.length === 0 || found.at(-1).length === MOST_OPS || bytes + length > BATCH_BYTES) {
            found.push([]);
            bytes = 0;
        }
        found.at(-1).push(op);
        bytes += length;
    }
    return found;
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

// A store for one build of the library.
export function makeStore(library) {
    class Store extends library.BaseStore {
        async batch(operations) {
            const run = runs.getStore();
            if (!run) {
                throw new RunnerError('ValueError', 'the store is used outside of a run');
            }
            const ops = operations.map(toOp);
            const results = [];
            for (const group of groups(ops.map((op) => pageOf(op, 0)))) {
                results.push(...await request(run.output, group));
            }
            for (const [i, op] of ops.entries()) {
                await readPages(run.output, op, results[i]);
            }
            return results.map((result, i) => fromResult(ops[i], result));
        }
    }
    return new Store();
}
