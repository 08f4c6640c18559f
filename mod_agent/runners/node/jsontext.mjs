// SPDX-License-Identifier: Apache-2.0
// Values of the application as JSON that the protocol allows: messages flat,
// errors as objects, bytes in base64, `[Circular]` for cycles, no U+0000,
// no unpaired surrogates, at most LEVELS_MAX levels. The library's own encoding of values
// is in blobs.mjs.
import { RunnerError } from './errors.mjs';
import { cleanText } from './text.mjs';

// A line has some levels around a value.
const LEVELS_MAX = 110;
const SMALLEST = 1e-308;

function renderNumber(value) {
    if (!Number.isFinite(value)) {
        return null;
    }
    return Math.abs(value) < SMALLEST ? 0 : value;
}

// {...data, type} of a LangChain message: its toDict() without the nesting.
function flatMessage(value) {
    const { type, data } = value.toDict();
    return { ...data, type };
}

function isMessage(value) {
    return typeof value.toDict === 'function' && typeof value.getType === 'function';
}

// The plain object or value that is rendered in place of a value.
function standIn(value) {
    if (isMessage(value)) {
        return flatMessage(value);
    }
    if (value instanceof Error) {
        return { name: value.name, message: value.message };
    }
    if (ArrayBuffer.isView(value)) {
        return Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString('base64');
    }
    if (value instanceof Map) {
        return Object.fromEntries(value);
    }
    if (value instanceof Set) {
        return [...value];
    }
    return typeof value.toJSON === 'function' ? value.toJSON() : value;
}

// Like JSON.parse(): a member `__proto__` is an ordinary member.
function setMember(object, name, value) {
    if (name === '__proto__') {
        Object.defineProperty(object, name, { value, configurable: true, enumerable: true, writable: true });
    } else {
        object[name] = value;
    }
}

function renderObject(value, level, walk) {
    const result = {};
    for (const name of Object.keys(value)) {
        const member = value[name];
        if (member !== undefined && typeof member !== 'function' && typeof member !== 'symbol') {
            setMember(result, cleanText(name), renderLevel(member, level, walk));
        }
    }
    return result;
}

function renderContainer(value, level, walk) {
    if (level >= LEVELS_MAX) {
        throw new RunnerError('NotRenderedError', `a value has more than ${LEVELS_MAX} levels`);
    }
    if (walk.open.has(value)) {
        return '[Circular]';
    }
    walk.open.add(value);
    const plain = standIn(value);
    let result;
    if (plain === null || typeof plain !== 'object') {
        result = renderLevel(plain, level, walk);
    } else if (Array.isArray(plain)) {
        result = plain.map((item) => renderLevel(item, level + 1, walk));
    } else {
        result = renderObject(plain, level + 1, walk);
    }
    walk.open.delete(value);
    return result;
}

function renderLevel(value, level, walk) {
    switch (typeof value) {
    case 'string':
        return cleanText(value);
    case 'number':
        return renderNumber(value);
    case 'boolean':
        return value;
    case 'bigint':
        if (!walk.isLenient) {
            throw new RunnerError('NotRenderedError', 'JSON cannot hold a BigInt');
        }
        return String(value);
    case 'object':
        return value === null ? null : renderContainer(value, level, walk);
    default:
        return null;
    }
}

export function isObject(value) {
    return value !== null && typeof value === 'object' && !Array.isArray(value);
}

// A value as plain objects, arrays, texts and numbers. Throws for a value that
// JSON cannot hold; isLenient: has its text instead.
export function render(value, isLenient = false) {
    return renderLevel(value, 0, { open: new Set(), isLenient });
}
