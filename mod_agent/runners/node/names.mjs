// SPDX-License-Identifier: Apache-2.0
// Which ids, namespaces and names of channels the records of a run may have (PROTOCOL.md).
import { RunnerError } from './errors.mjs';
import { cleanText } from './text.mjs';

const NS_BYTES_MAX = 2048;
// The namespace of a line has no escapes (PROTOCOL.md, `checkpoint`).
const BAD_NS = /["\\\p{Cc}\p{Cs}\u2028\u2029]/u;
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
const DELTA_CHANNELS_MAX = 64;
const DELTA_BYTES_MAX = 3800;

// The id may be one that the graph's own code has made.
export function checkId(id) {
    if (id !== undefined && id !== null && id !== '' && !UUID.test(id)) {
        throw new RunnerError('ValueError', `a checkpoint_id is a UUID in lower case, not "${String(id).slice(0, 80)}"`);
    }
}

// Names of channels, some of which contain names of nodes, are not cleaned: a changed name
// would be that of another channel.
export function checkChannel(name) {
    if (cleanText(name) !== name) {
        throw new RunnerError('NotRenderedError',
            `the name of a channel or node has no U+0000 and no unpaired surrogates: ${JSON.stringify(name).slice(0, 80)}`);
    }
}

export function checkNamespace(ns) {
    if (Buffer.byteLength(ns) > NS_BYTES_MAX) {
        throw new RunnerError('NotRenderedError', `the namespace of a subgraph has more than ${NS_BYTES_MAX} bytes`);
    }
    if (BAD_NS.test(ns)) {
        throw new RunnerError('NotRenderedError',
            `the name of a node with a subgraph has no quotes, backslashes or control characters: ${ns}`);
    }
}

// Names of channels in groups that a request may have, beside the namespace.
export function deltaGroups(ns, names) {
    const most = DELTA_BYTES_MAX - Buffer.byteLength(JSON.stringify(ns));
    const groups = [];
    let bytes = most;
    for (const name of names) {
        const length = Buffer.byteLength(JSON.stringify(name)) + 1;
        if (bytes + length > most || groups.at(-1).length === DELTA_CHANNELS_MAX) {
            groups.push([]);
            bytes = 0;
        }
        groups.at(-1).push(name);
        bytes += length;
    }
    return groups;
}
