// SPDX-License-Identifier: Apache-2.0
// Values of the library from JSON. Its serializer makes a promise for each element, also of an
// array of numbers, which costs seconds and hundreds of MB, and does not tell what it has marked
// from what a client has: before @langchain/langgraph-checkpoint 1.1.5 it calls the static method
// that a mark names, before @langchain/core 1.1.8 it reads variables of the environment. So it
// gets only classes of the library. A value of another form than the serializer writes is plain.

// A mark as the serializer writes it: JSON.stringify() has no escapes for letters.
const MARK = '"lc":';

const isByte = (item) => Number.isInteger(item) && item >= 0 && item <= 255;
const isPair = (item) => Array.isArray(item) && item.length === 2;
const areStrings = (args, count) => args.length === count && args.every((item) => typeof item === 'string');
const isList = (args) => args.length === 1 && Array.isArray(args[0]);

// The classes of JavaScript that the serializer marks: whether it writes such arguments, its
// method, and the value.
const CLASSES = new Map(Object.entries({
    Set: { fits: isList, method: null, make: ([items]) => new Set(items) },
    Map: { fits: (args) => isList(args) && args[0].every(isPair), method: null, make: ([items]) => new Map(items) },
    RegExp: { fits: (args) => areStrings(args, 2), method: null, make: ([source, flags]) => new RegExp(source, flags) },
    Error: { fits: (args) => areStrings(args, 1), method: null, make: ([message]) => new Error(message) },
    Uint8Array: { fits: (args) => isList(args) && args[0].every(isByte), method: 'from', make: ([items]) => Uint8Array.from(items) },
}));

function isObject(value) {
    return value !== null && typeof value === 'object';
}

// Whether an object has exactly the members of these names.
function hasMembers(value, ...names) {
    return Object.keys(value).length === names.length && names.every((name) => Object.hasOwn(value, name));
}

// The class of a mark as the serializer writes it: of a value of JavaScript.
function classOf(value) {
    if (!hasMembers(value, 'lc', 'type', 'id', 'method', 'args', 'kwargs') || value.type !== 'constructor'
        || !Array.isArray(value.id) || value.id.length !== 1 || !Array.isArray(value.args)
        || !isObject(value.kwargs) || Object.keys(value.kwargs).length > 0) {
        return undefined;
    }
    const found = CLASSES.get(value.id[0]);
    return found && (value.method === null || value.method === found.method) && found.fits(value.args) ? found : undefined;
}

// Whether the serializer makes no more of a mark than its form says, in a value that it gets. An
// own `__proto__` would give an object members that it does not show here.
function isHarmless(value) {
    if (Object.hasOwn(value, '__proto__') || (value.lc === 1 && value.type === 'secret')) {
        return false;
    }
    return value.lc !== 2 || value.type !== 'constructor' || classOf(value) !== undefined
        || (!value.method && Array.isArray(value.id) && !CLASSES.has(value.id.at(-1)));
}

// Calls visit(holder, name) for each object in a value, outer ones first; one of which it
// returns false is not entered. Without recursion: a value may have any number of levels.
function walk(root, visit) {
    const holders = [root];
    const look = (holder, name) => {
        if (isObject(holder[name]) && visit(holder, name)) {
            holders.push(holder[name]);
        }
    };
    while (holders.length > 0) {
        const holder = holders.pop();
        if (Array.isArray(holder)) {
            holder.forEach((_, index) => look(holder, index));
        } else {
            Object.keys(holder).forEach((name) => look(holder, name));
        }
    }
}

function areAllHarmless(value) {
    let found = true;
    walk({ value }, (holder, name) => {
        found &&= isHarmless(holder[name]);
        return found;
    });
    return found;
}

// The value of a mark of a class of the library: a class that does not exist, or is not to be made,
// leaves a plain value, so that the thread can be used.
async function load(serde, value) {
    if (!areAllHarmless(value)) {
        return value;
    }
    try {
        return await serde.loadsTyped('json', JSON.stringify(value));
    } catch {
        return value;
    }
}

// The value of a mark of a class of JavaScript.
function make(value) {
    try {
        return classOf(value)?.make(value.args) ?? value;
    } catch {
        return value;
    }
}

// The library's own class, which it makes if it has one, for a value that is made already.
async function makeSnapshot(serde, mark) {
    const empty = await serde.loadsTyped('json', JSON.stringify({ ...mark, value: null }));
    return Object.hasOwn(empty, 'lc') ? mark : new empty.constructor(mark.value);
}

const isOfLibrary = (value) => value.lc === 1 && value.type === 'constructor';

function reviveMark(serde, value) {
    if (isOfLibrary(value)) {
        return load(serde, value);
    }
    if (value.type === 'undefined' && hasMembers(value, 'lc', 'type')) {
        return undefined;
    }
    return value.type === 'delta_snapshot' && hasMembers(value, 'lc', 'type', 'value')
        ? makeSnapshot(serde, value) : make(value);
}

// The value of a blob, with all that the library's serializer has marked.
export async function revive(serde, type, bytes) {
    if (type !== 'json') {
        return serde.loadsTyped(type, bytes);
    }
    const root = { value: JSON.parse(bytes.toString('utf8')) };
    if (!bytes.includes(MARK)) {
        return root.value;
    }
    const places = [];
    walk(root, (holder, name) => {
        const value = holder[name];
        if (isOfLibrary(value) || value.lc === 2) {
            places.push([holder, name]);
        }
        return !isOfLibrary(value);
    });
    // Inner ones first: outer ones have their values as arguments.
    for (const [holder, name] of places.reverse()) {
        holder[name] = await reviveMark(serde, holder[name]);
    }
    return root.value;
}
