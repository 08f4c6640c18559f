// SPDX-License-Identifier: Apache-2.0
// The metadata that events repeat: of the members of `configurable`, which the library copies into
// them, at most 16 KB. The server limits what the client sends as `metadata` to as much,
// `configurable` to 64 KB; a `context` of more than 256 members is not copied into `configurable`.
// All versions copy `model` and the ids; 1.0 copies each string, number and boolean.

// As JSON, of the names and values together.
const COPIED_BYTES_MAX = 16_384;
const COPIED_TYPES = ['string', 'number', 'boolean'];
// These come first.
const NEEDED = ['model', 'user_id'];

function lengthOf(value) {
    return Buffer.byteLength(JSON.stringify(value) ?? '');
}

// The metadata of the events of a run.
export class Metadata {
    // The longest of the members that may be copied, with which they are too many.
    #omitted = new Map();

    // configurable, metadata: of the library's configuration, as the run gives them.
    constructor(configurable, metadata) {
        const copied = Object.entries(configurable)
            .filter(([name, value]) => COPIED_TYPES.includes(typeof value)
                && !(Object.hasOwn(metadata, name) && metadata[name] === value));
        // No character has more than 6 bytes in JSON.
        if (6 * copied.reduce((sum, [name, value]) => sum + name.length + String(value).length + 1, 0) <= COPIED_BYTES_MAX) {
            return;
        }
        const members = copied.map(([name, value]) => [name, value, lengthOf(name) + lengthOf(value)])
            .sort(([left, , leftLength], [right, , rightLength]) =>
                NEEDED.includes(right) - NEEDED.includes(left) || leftLength - rightLength);
        let total = 0;
        for (const [name, value, length] of members) {
            if (total + length > COPIED_BYTES_MAX) {
                this.#omitted.set(name, value);
            } else {
                total += length;
            }
        }
    }

    // The metadata without what is beyond the limit.
    bounded(metadata) {
        if (this.#omitted.size === 0 || !metadata) {
            return metadata;
        }
        // A member of that name that is not a copy is the library's or the graph's own.
        return Object.fromEntries(Object.entries(metadata)
            .filter(([name, value]) => value === undefined || this.#omitted.get(name) !== value));
    }
}
