// SPDX-License-Identifier: Apache-2.0
// Values of the library as blobs: their digests, lists by element, parts. An
// element that was sent or read before and is unchanged is not encoded again.
import * as crypto from 'node:crypto';
import { keepCached } from './cache.mjs';
import { RunnerError } from './errors.mjs';
import { Recent } from './recent.mjs';
import { digestsOf } from './references.mjs';
import { revive } from './revive.mjs';
import { encodedOf, remember, snapshotOf } from './unchanged.mjs';

const LIST_DIGESTS_MAX = 65536;
// Digests remembered as sent or read: enough for a few of the longest lists.
const DIGESTS_MAX = 262144;
const PARTS_MAX = 16;
// Digests of a request, whose arguments have at most 4,096 bytes.
const REQUEST_DIGESTS = 100;
// A value of more bytes is not copied for its digest.
const COPIED_BYTES_MAX = 16_384;
// The library's serializer returns this text, instead of throwing, for a value that it cannot encode:
// one with a BigInt, with a cycle through a Map or a Set, or whose toJSON() throws.
const UNENCODED = Buffer.from('"[unable to serialize, circular reference is too complex to analyze]"');

// Of a type and a value. For a short one Node 20.12 has a function that takes half the time.
function sha256(head, bytes) {
    return crypto.hash && bytes.length <= COPIED_BYTES_MAX
        ? crypto.hash('sha256', Buffer.concat([Buffer.from(head), bytes]), 'hex')
        : crypto.createHash('sha256').update(head).update(bytes).digest('hex');
}

export function digestOf(type, bytes) {
    const hex = sha256(`${type}\n`, bytes);
    return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20),
        hex.slice(20, 32)].join('-');
}

// A value that the library cannot serialize has the error of one that cannot be rendered.
function refuse(error) {
    throw error instanceof TypeError ? new RunnerError('NotRenderedError', error.message) : error;
}

// Whether the bytes are those of a value that the serializer has given up. A text may be the same.
function isUnencoded(value, bytes) {
    return typeof value !== 'string' && bytes.length === UNENCODED.length && UNENCODED.equals(bytes);
}

// Whether a value is stored element by element.
function isStoredByElement(value) {
    return Array.isArray(value) && value.length <= LIST_DIGESTS_MAX
        && value.every((item) => item !== null && typeof item === 'object');
}

// The parts of a value, each of at most `most` bytes, divided between characters.
function partsOf(bytes, most) {
    const parts = [];
    for (let from = 0; from < bytes.length || parts.length === 0;) {
        let until = Math.min(from + most, bytes.length);
        while (until < bytes.length && (bytes[until] & 0xc0) === 0x80) {
            until -= 1;
        }
        parts.push(bytes.subarray(from, until));
        from = until;
    }
    return parts;
}

// The members of a line with bytes of a value.
function blobOf(digest, type, piece) {
    const buffer = Buffer.from(piece.buffer, piece.byteOffset, piece.byteLength);
    return type === 'json' ? { digest, value_type: type, text: buffer.toString('utf8') }
        : { digest, value_type: type, base64: buffer.toString('base64') };
}

export class Blobs {
    #output;
    #serde;
    // Digests that this run has sent or read.
    #digests = new Recent(DIGESTS_MAX);
    #cached;

    // cached: digest -> value of the last run of the thread.
    constructor(output, serde, cached = new Map()) {
        this.#output = output;
        this.#serde = serde;
        this.#cached = cached;
    }

    // The reference of a value: {digests: [...]} of a list, {digest} of another one.
    async reference(value) {
        if (!isStoredByElement(value)) {
            return { digest: await this.#sendValue(value) };
        }
        const digests = [];
        for (const item of value) {
            const digest = encodedOf(item)?.digest;
            digests.push(digest !== undefined && this.#digests.has(digest)
                ? digest : await this.#sendValue(item));
        }
        return { digests };
    }

    async #sendValue(value) {
        const isObject = value !== null && typeof value === 'object';
        // Before the first await, during which a reducer may set the id of a message.
        const entry = isObject ? snapshotOf(value) : undefined;
        let encoded;
        try {
            encoded = await this.#serde.dumpsTyped(value);
        } catch (error) {
            refuse(error);
        }
        const [type, data] = encoded;
        const bytes = typeof data === 'string' ? Buffer.from(data) : data;
        if (type === 'json' && bytes.length === 0) {
            throw new RunnerError('NotRenderedError', `JSON cannot hold a ${typeof value}`);
        }
        if (type === 'json' && isUnencoded(value, bytes)) {
            throw new RunnerError('NotRenderedError',
                'JSON cannot hold a value with a BigInt, a cycle through a Map or a Set, or a toJSON() that throws');
        }
        const digest = digestOf(type, bytes);
        if (!this.#digests.has(digest)) {
            this.#digests.add(digest);
            const room = this.#sendBytes(digest, type, bytes);
            if (room) {
                await room;
            }
        }
        if (isObject) {
            remember(value, entry, digest, bytes.length);
        }
        return digest;
    }

    // A promise when the caller should wait.
    #sendBytes(digest, type, bytes) {
        const most = this.#output.partBytes;
        return bytes.length <= most
            ? this.#output.send('blob', blobOf(digest, type, bytes)) : this.#sendParts(digest, type, bytes, most);
    }

    async #sendParts(digest, type, bytes, most) {
        const parts = partsOf(bytes, most);
        if (parts.length > PARTS_MAX) {
            throw new RunnerError('ValueTooLargeError',
                `a value of the library has ${bytes.length} bytes, more than ${PARTS_MAX * most}`);
        }
        for (const [part, piece] of parts.entries()) {
            await this.#output.send('blob', { ...blobOf(digest, type, piece), part, parts: parts.length });
        }
    }

    // A reply has these references: their values are stored, and not sent again.
    note(references) {
        references.flatMap(digestsOf).forEach((digest) => this.#digests.add(digest));
    }

    // The values of references as a reply has them, in their order; undefined for null.
    async load(references) {
        const wanted = new Set(references.flatMap(digestsOf));
        const values = await this.#request([...wanted].filter((digest) => !this.#isCached(digest)));
        const results = [];
        for (const reference of references) {
            results.push(await this.#build(reference, values));
        }
        return results;
    }

    // Whether the last run of the thread has left the value, and it is unchanged.
    #isCached(digest) {
        const value = this.#cached.get(digest);
        if (value === undefined || encodedOf(value)?.digest !== digest) {
            this.#cached.delete(digest);
            return false;
        }
        this.#digests.add(digest);
        return true;
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

    // An element that an earlier run has left is taken once: two lists may have it.
    async #decode(digest, blobs) {
        const cached = this.#cached.get(digest);
        if (cached !== undefined) {
            this.#cached.delete(digest);
            return cached;
        }
        if (!blobs.has(digest)) {
            (await this.#request([digest])).forEach((blob, name) => blobs.set(name, blob));
        }
        const { type, bytes } = blobs.get(digest);
        const value = await revive(this.#serde, type, bytes);
        if (value !== null && typeof value === 'object') {
            remember(value, snapshotOf(value), digest, bytes.length);
        }
        return value;
    }

    // Makes load() use the list elements of a state that was put, instead of decoding them.
    reuse(values) {
        for (const item of Object.values(values).filter(isStoredByElement).flat()) {
            const entry = encodedOf(item);
            if (entry) {
                this.#cached.set(entry.digest, item);
            }
        }
    }

    // Keeps the elements of the lists of a state for the next run of the thread.
    keep(thread, values) {
        const kept = new Map();
        let size = 0;
        for (const item of Object.values(values).filter(isStoredByElement).flat()) {
            const entry = encodedOf(item);
            if (entry) {
                kept.set(entry.digest, item);
                size += entry.size;
            }
        }
        keepCached(thread, kept, size);
    }

    // The bytes of blobs, by digest.
    async #request(digests) {
        const blobs = new Map();
        for (let from = 0; from < digests.length; from += REQUEST_DIGESTS) {
            const args = { digests: digests.slice(from, from + REQUEST_DIGESTS) };
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
