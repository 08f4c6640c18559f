// SPDX-License-Identifier: Apache-2.0
// Operations of the store as the protocol has them, validated by the server's rules
// (PROTOCOL.md, "The store").
import { RunnerError } from './errors.mjs';
import { isObject, render } from './jsontext.mjs';
import { log } from './log.mjs';
import { cleanText } from './text.mjs';

// Results of a search or a list; more are read page by page.
export const PAGE = 1000;
const VALUE_BYTES_MAX = 1048576;
// As jsonb, which writes numbers without exponents.
const JSONB_BYTES_MAX = 4194304;
const NAME_BYTES_MAX = 1024;
const LABELS_MAX = 32;
const CONDITIONS_MAX = 32;
const FILTER_BYTES_MAX = 16384;
const NUMBER_MAX = 2147483647;
const OPERATORS = new Set(['$eq', '$ne', '$gt', '$gte', '$lt', '$lte']);
// In a condition, any label.
const ANY = '*';
// Options without effect that the log has named.
const warned = new Set();

// The checks of the server, made here first: many refused requests of a run are a breach,
// which ends the process.
function checkNamespace(namespace, least) {
    const isValid = Array.isArray(namespace) && namespace.length >= least && namespace.length <= LABELS_MAX
        && namespace.every((label) => typeof label === 'string' && label !== '' && !label.includes('.'));
    const labels = isValid ? namespace.map(cleanText) : [];
    if (!isValid || labels.reduce((sum, label) => sum + Buffer.byteLength(label), 0) > NAME_BYTES_MAX) {
        throw new RunnerError('InvalidNamespaceError',
            `a namespace has ${least} to ${LABELS_MAX} labels without periods, ${NAME_BYTES_MAX} bytes together`);
    }
    return labels;
}

function checkKey(key) {
    const text = cleanText(String(key));
    if (text === '' || Buffer.byteLength(text) > NAME_BYTES_MAX) {
        throw new RunnerError('ValueError', `a key of the store has 1 to ${NAME_BYTES_MAX} bytes`);
    }
    return text;
}

function checkNumber(number, least, name) {
    const isValid = Number.isInteger(number) && number >= least && number <= NUMBER_MAX;
    if (number !== undefined && number !== null && !isValid) {
        throw new RunnerError('ValueError', `${name} is an integer from ${least} to ${NUMBER_MAX}`);
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
    if (operators.length > CONDITIONS_MAX || bytes > FILTER_BYTES_MAX) {
        throw new RunnerError('ValueError',
            `a filter has at most ${CONDITIONS_MAX} conditions and ${FILTER_BYTES_MAX} bytes`);
    }
    return plain;
}

function checkValue(value) {
    const plain = value === null || value === undefined ? null : render(value);
    if (plain !== null && !isObject(plain)) {
        throw new RunnerError('ValueError', 'a value of the store is an object');
    }
    const bytes = Buffer.byteLength(JSON.stringify(plain));
    if (bytes > VALUE_BYTES_MAX || bytes + addedBytes(plain) > JSONB_BYTES_MAX) {
        throw new RunnerError('ValueError', `a value of the store has at most ${VALUE_BYTES_MAX} bytes, `
            + `and ${JSONB_BYTES_MAX} with numbers written without exponents`);
    }
    return plain;
}

// The beginning that meets both; undefined if they contradict each other.
function bothOf(one, other) {
    const found = [];
    for (let i = 0; i < Math.max(one.length, other.length); i += 1) {
        const [label, second] = [one[i] ?? ANY, other[i] ?? ANY];
        if (label !== ANY && second !== ANY && label !== second) {
            return undefined;
        }
        found.push(label === ANY ? second : label);
    }
    return found;
}

// The prefix and the suffix that a namespace must have; undefined if none can meet all conditions.
function conditionsOf(conditions) {
    const found = {};
    for (const { matchType, path } of conditions) {
        const labels = checkNamespace(path, 0);
        if (matchType !== 'prefix' && matchType !== 'suffix') {
            throw new RunnerError('ValueError', `namespaces are listed by prefix and suffix, not by ${matchType}`);
        }
        found[matchType] = matchType === 'prefix' ? bothOf(found.prefix ?? [], labels)
            : bothOf((found.suffix ?? []).toReversed(), labels.toReversed())?.toReversed();
        if (found[matchType] === undefined) {
            return undefined;
        }
    }
    return found;
}

function listOp({ matchConditions, maxDepth, limit, offset }) {
    const conditions = conditionsOf(matchConditions ?? []);
    const wanted = checkNumber(limit, 0, 'limit');
    return {
        op: 'list', ...conditions,
        max_depth: checkNumber(maxDepth, 1, 'maxDepth'),
        limit: conditions ? wanted : 0, offset: checkNumber(offset, 0, 'offset'),
    };
}

// Logs once that the store has no index, as the library's own stores accept these options
// without one.
function warnOf(option, value) {
    if (value && !warned.has(option)) {
        warned.add(option);
        log(`the store has no index: ${option} has no effect`);
    }
}

// An operation of the library as the protocol has it; its kind follows from its members.
export function toOp(operation) {
    if ('namespacePrefix' in operation) {
        const { namespacePrefix, filter, limit, offset, query } = operation;
        warnOf('query of a search', query);
        return {
            op: 'search', namespace_prefix: checkNamespace(namespacePrefix, 0), filter: checkFilter(filter),
            limit: checkNumber(limit, 0, 'limit'), offset: checkNumber(offset, 0, 'offset'),
        };
    }
    if ('value' in operation) {
        const { namespace, key, value, index } = operation;
        warnOf('index of a put', index);
        return { op: 'put', namespace: checkNamespace(namespace, 1), key: checkKey(key), value: checkValue(value) };
    }
    if ('key' in operation) {
        return { op: 'get', namespace: checkNamespace(operation.namespace, 1), key: checkKey(operation.key) };
    }
    return listOp(operation);
}
