// SPDX-License-Identifier: Apache-2.0
// The digests of encoded objects, of all runs, and whether an object is unchanged since: its
// members are compared recursively, which takes a fraction of the time of encoding them.

// An object of more leaves is always encoded.
const LEAVES_MAX = 512;

// value -> {digest, size, leaves}: size is that of its encoded bytes; no leaves: there
// are too many, or they cannot be compared.
const known = new WeakMap();

// In the place of a prototype for objects without one.
const BARE = {};

// The prototype of an object whose state is in its members: an array, a plain object, one of
// a class of LangChain; undefined for others (Map, URL, Error, classes with private members).
function kindOf(value) {
    const prototype = Object.getPrototypeOf(value);
    if (prototype === null) {
        return BARE;
    }
    const isOpen = prototype === Object.prototype || prototype === Array.prototype || Array.isArray(value.lc_namespace);
    return isOpen ? prototype : undefined;
}

// Adds the names and values of an object, depth first; false if there are too many.
function addLeaves(leaves, value) {
    if (value === null || typeof value !== 'object') {
        leaves.push(value);
        return leaves.length <= LEAVES_MAX;
    }
    // An object may contain itself.
    const kind = kindOf(value);
    if (kind === undefined || leaves.length > LEAVES_MAX) {
        return false;
    }
    const names = Object.keys(value);
    leaves.push(kind, names.length);
    for (const name of names) {
        leaves.push(name);
        if (!addLeaves(leaves, value[name])) {
            return false;
        }
    }
    return leaves.length <= LEAVES_MAX;
}

// The position after the leaves of a value, if they are those from `at` on; else -1.
function match(leaves, at, value) {
    if (value === null || typeof value !== 'object') {
        return at < leaves.length && Object.is(leaves[at], value) ? at + 1 : -1;
    }
    const names = Object.keys(value);
    if (leaves[at] !== kindOf(value) || leaves[at + 1] !== names.length) {
        return -1;
    }
    let next = at + 2;
    for (const name of names) {
        if (leaves[next] !== name) {
            return -1;
        }
        next = match(leaves, next + 1, value[name]);
        if (next < 0) {
            return -1;
        }
    }
    return next;
}

function isUnchanged(entry, value) {
    return entry.leaves !== undefined && match(entry.leaves, 0, value) === entry.leaves.length;
}

// A value as it is now, for remember().
export function snapshotOf(value) {
    const leaves = [];
    return addLeaves(leaves, value) ? { leaves } : {};
}

// Remembers the digest of a value: entry was made before the value was encoded.
export function remember(value, entry, digest, size) {
    const before = known.get(value);
    if (before?.digest !== digest || (entry.leaves && !isUnchanged(before, value))) {
        known.set(value, { ...entry, digest, size });
    }
}

// {digest, size} of a value that is as it was; else undefined.
export function encodedOf(value) {
    const entry = known.get(value);
    return entry && isUnchanged(entry, value) ? entry : undefined;
}

// A token, for ===, that changes when the value or its last encoding does. An object that
// was never encoded on its own gets a new token each time: its changes would not be seen.
export function stampOf(value) {
    return value !== null && typeof value === 'object' ? known.get(value) ?? {} : value;
}
