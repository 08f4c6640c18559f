// SPDX-License-Identifier: Apache-2.0
// Values of the library as blobs: their digests, lists by element, parts. An
// element that was sent or read before is found by its identity; one whose own
// members were changed since is encoded again.
import { createHash } from 'node:crypto';
import { RunnerError } from './errors.mjs';

const MOST_DIGESTS = 65536;
// Bytes of a part: with all escapes its text is no longer than a line may be.
const PART_BYTES = 4190000;
const MOST_PARTS = 16;
// Digests of a request, whose arguments have at most 4,096 bytes.
const DIGESTS_A_REQUEST = 100;
// Members of an object whose changes are noticed; longer ones are always encoded.
const MOST_MEMBERS = 64;

// The digests of objects of all runs, with their members at that time.
const known = new WeakMap();

function membersOf(value) {
    const names = Object.keys(value);
    return names.length > MOST_MEMBERS ? undefined : names.flatMap((name) => [name, value[name]]);
}

function isSame(before, now) {
    return now !== undefined && before.length === now.length
        && before.every((member, i) => Object.is(member, now[i]));
}

// members: those that the digest is of.
function remember(value, digest, members) {
    if (!members) {
        known.delete(value);
    } else if (known.get(value)?.digest !== digest || !isSame(known.get(value).members, members)) {
        known.set(value, { digest, members });
    }
}

// Something that is the same for a value as long as neither it nor, as far as records
// of it were made, its members change.
export function stampOf(value) {
    return value !== null && typeof value === 'object' ? known.get(value) ?? value : value;
}

function cachedDigest(value) {
    const entry = known.get(value);
    return entry && isSame(entry.members, membersOf(value)) ? entry.digest : undefined;
}

export function digestOf(type, bytes) {
    const hex = createHash('sha256').update(`${type}\n`).update(bytes).digest('hex');
    return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20),
        hex.slice(20, 32)].join('-');
}

// Whether a value is stored element by element.
function isList(value) {
    return Array.isArray(value) && value.length <= MOST_DIGESTS
        && value.every((item) => item !== null && typeof item === 'object');
}

// The parts of a value, divided between characters.
function partsOf(bytes) {
    const parts = [];
    for (let from = 0; from < bytes.length || parts.length === 0;) {
        let until = Math.min(from + PART_BYTES, bytes.length);
        while (until < bytes.length && (bytes[until] & 0xc0) === 0x80) {
            until -= 1;
        }
        parts.push(bytes.subarray(from, until));
        from = until;
    }
    return parts;
}

export class Values {
    #output;
    #serde;
    // Digests that this run has sent or read.
    #digests = new Set();

    constructor(output, serde) {
        this.#output = output;
        this.#serde = serde;
    }

    // The reference of a value: {digests: [...]} of a list, {digest} of another one.
    async refer(value) {
        if (!isList(value)) {
            return { digest: await this.#digest(value) };
        }
        const digests = [];
        for (const item of value) {
            const digest = cachedDigest(item);
            digests.push(digest !== undefined && this.#digests.has(digest)
                ? digest : await this.#digest(item));
        }
        return { digests };
    }

    async #digest(value) {
        const isObject = value !== null && typeof value === 'object';
        // Before the first pause, in which a reducer may set the id of a message.
        const members = isObject ? membersOf(value) : undefined;
        const [type, data] = await this.#serde.dumpsTyped(value);
        const bytes = typeof data === 'string' ? Buffer.from(data) : data;
        if (type === 'json' && bytes.length === 0) {
            throw new RunnerError('TypeError', `JSON cannot hold a ${typeof value}`);
        }
        const digest = digestOf(type, bytes);
        if (!this.#digests.has(digest)) {
            this.#digests.add(digest);
            await this.#send(digest, type, bytes);
        }
        if (isObject) {
            remember(value, digest, members);
        }
        return digest;
    }

    async #send(digest, type, bytes) {
        const parts = partsOf(bytes);
        if (parts.length > MOST_PARTS) {
            throw new RunnerError('ValueTooLargeError',
                `a value has ${bytes.length} bytes, more than ${MOST_PARTS} parts of a line`);
        }
        for (const [part, piece] of parts.entries()) {
            const buffer = Buffer.from(piece.buffer, piece.byteOffset, piece.byteLength);
            const data = type === 'json'
                ? { text: buffer.toString('utf8') } : { base64: buffer.toString('base64') };
            const number = parts.length > 1 ? { part, parts: parts.length } : {};
            await this.#output.send('blob', { digest, value_type: type, ...data, ...number });
        }
    }

    // The values of references as a reply has them, in their order; undefined for null.
    async load(references) {
        const wanted = new Set(references.flatMap(digestsOf));
        const values = await this.#read([...wanted]);
        const results = [];
        for (const reference of references) {
            results.push(await this.#build(reference, values));
        }
        return results;
    }

    async #build(reference, blobs) {
        if (reference === null || reference === undefined) {
            return undefined;
        }
        if (typeof reference === 'string') {
            return this.#decode(reference, blobs);
        }
        const list = [];
        for (const digest of reference.list.items) {
            list.push(await this.#decode(digest, blobs));
        }
        return list;
    }

    async #decode(digest, blobs) {
        const { type, bytes } = blobs.get(digest);
        const value = await this.#serde.loadsTyped(type, bytes);
        if (value !== null && typeof value === 'object') {
            remember(value, digest, membersOf(value));
        }
        return value;
    }

    // The bytes of blobs, by digest.
    async #read(digests) {
        const blobs = new Map();
        for (let from = 0; from < digests.length; from += DIGESTS_A_REQUEST) {
            const args = { digests: digests.slice(from, from + DIGESTS_A_REQUEST) };
            let cursor = null;
            do {
                const reply = await this.#output.request('blob.get', args, cursor);
                reply.result.blobs.forEach((blob) => takePart(blobs, blob));
                cursor = reply.cursor;
            } while (cursor !== null);
        }
        for (const [digest, blob] of blobs) {
            blob.bytes = blob.pieces.length === 1 ? blob.pieces[0] : Buffer.concat(blob.pieces);
            this.#digests.add(digest);
        }
        return blobs;
    }
}

function takePart(blobs, { digest, value_type: type, text, base64 }) {
    const piece = text === undefined || text === null
        ? Buffer.from(base64, 'base64') : Buffer.from(text, 'utf8');
    if (!blobs.has(digest)) {
        blobs.set(digest, { type, pieces: [] });
    }
    blobs.get(digest).pieces.push(piece);
}

function digestsOf(reference) {
    if (reference === null || reference === undefined) {
        return [];
    }
    return typeof reference === 'string' ? [reference] : reference.list.items;
}
