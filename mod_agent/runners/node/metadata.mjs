// SPDX-License-Identifier: Apache-2.0
// The metadata that events repeat: of the members of `configurable`, which the library copies into
// them, at most 16 KB. The server limits what the client sends as `metadata`, not `configurable`.
// All versions copy `model` and the ids; 1.0 copies each string, number and boolean.

// As JSON, of the names and values together.
const COPIED_BYTES_MAX = 16_384;

function lengthOf(value) {
    return Buffer.byteLength(JSON.stringify(value) ?? '');
}

// The metadata of the events of a run.
export class Metadata {
    // [name, value, length] of the members that may be copied, the shortest first; none if all of them fit.
    #members = [];

    // configurable, metadata: of the library's configuration, as the run gives them.
    constructor(configurable, metadata) {
        const members = Object.entries(configurable)
            .filter(([name, value]) => value !== undefined && !(Object.hasOwn(metadata, name) && metadata[name] === value));
        if (lengthOf(members) > COPIED_BYTES_MAX) {
            this.#members = members.map(([name, value]) => [name, value, lengthOf(name) + lengthOf(value)])
                .sort(([, , left], [, , right]) => left - right);
        }
    }

    // The metadata without what is beyond the limit: the longest of the copied members are left out.
    bounded(metadata) {
        if (this.#members.length === 0 || !metadata) {
            return metadata;
        }
        let total = 0;
        const omitted = new Set();
        for (const [name, value, length] of this.#members) {
            // A member of that name that is not a copy is the library's or the graph's own.
            if (Object.hasOwn(metadata, name) && metadata[name] === value) {
                total += length;
                if (total > COPIED_BYTES_MAX) {
                    omitted.add(name);
                }
            }
        }
        return omitted.size === 0 ? metadata
            : Object.fromEntries(Object.entries(metadata).filter(([name]) => !omitted.has(name)));
    }
}
