// SPDX-License-Identifier: Apache-2.0
// Values of the library from JSON. Its serializer makes a promise for each element, also of an
// array of numbers, which costs seconds and hundreds of MB: it gets only what it has marked.

// A mark as the serializer writes it: JSON.stringify() has no escapes for letters.
const MARK = '"lc":';

// Whether the library may make something else of an object than JSON.parse() does.
function isMarked(value) {
    return value.lc === 1 || value.lc === 2;
}

// The places of the outermost objects that are marked: [holder, name]. Without recursion, since
// a value may have any number of levels.
function markedPlaces(root) {
    const places = [];
    const holders = [root];
    const look = (holder, name) => {
        const value = holder[name];
        if (value !== null && typeof value === 'object') {
            if (isMarked(value)) {
                places.push([holder, name]);
            } else {
                holders.push(value);
            }
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
    return places;
}

// The value of a blob, with all that the library's serializer has marked.
export async function revive(serde, type, bytes) {
    if (type !== 'json') {
        return serde.loadsTyped(type, bytes);
    }
    const root = { value: JSON.parse(bytes.toString('utf8')) };
    if (bytes.includes(MARK)) {
        for (const [holder, name] of markedPlaces(root)) {
            holder[name] = await serde.loadsTyped(type, JSON.stringify(holder[name]));
        }
    }
    return root.value;
}
