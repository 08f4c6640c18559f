// SPDX-License-Identifier: Apache-2.0
// Values of the library as blobs: their digests, lists by element, parts. An
// element that was sent or read before and is unchanged is not encoded again.
import { createHash } from 'node:crypto';
import { RunnerError } from './errors.mjs';
import { entryOf, knownEntry, remember } from './known.mjs';
import { Recent } from './recent.mjs';
import { revive } from './revive.mjs';
import { keepWarm } from './warm.mjs';

const MOST_DIGESTS = 65536;
// Digests remembered as sent or read: enough for a few of the longest lists.
const MOST_SENT = 262144;
const MOST_PARTS = 16;
// Digests of a request, whose arguments have at most 4,096 bytes.
const DIGESTS_A_REQUEST = 100;

export function digestOf(type, bytes) {
    const hex = createHash('sha256').update(`${type}\n`).update(bytes).digest('hex');
    return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20),
        hex.slice(20, 32)].join('-');
}

// A value that the library cannot serialize has the error of one that cannot be rendered.
function refuse(error) {
    throw error instanceof TypeError ? new RunnerError('NotRenderedError', error.message) : error;
}

// Whether a value is stored element by element.
function isList(value) {
    return Array.isArray(value) && value.length <= MOST_DIGESTS
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

export class Blobs {
    #output;
    #serde;
    // Digests that this run has sent or read.
    #digests = new Recent(MOST_SENT);
    #warm;

    // warm: digest -> value of the last run of the thread.
    constructor(output, serde, warm = new Map()) {
        this.#output = output;
        this.#serde = serde;
        this.#warm = warm;
    }

    // The reference of a value: {digests: [...]} of a list, {digest} of another one.
    async refer(value) {
        if (!isList(value)) {
            return { digest: await this.#digest(value) };
        }
        const digests = [];
        for (const item of value) {
            const digest = knownEntry(item)?.digest;
            digests.push(digest !== undefined && this.#digests.has(digest)
                ? digest : await this.#digest(item));
        }
        return { digests };
    }

    async #digest(value) {
        const isObject = value !== null && typeof value === 'object';
        // Before the first await, during which a reducer may set the id of a message.
        const entry = isObject ? entryOf(value) : undefined;
        const [type, data] = await this.#serde.dumpsTyped(value).catch(refuse);
        const bytes = typeof data === 'string' ? Buffer.from(data) : data;
        if (type === 'json' && bytes.length === 0) {
            throw new RunnerError('NotRenderedError', `JSON cannot hold a ${typeof value}`);
        }
        const digest = digestOf(type, bytes);
        if (!this.#digests.has(digest)) {
            this.#digests.add(digest);
            await this.#send(digest, type, bytes);
        }
        if (isObject) {
            remember(value, entry, digest, bytes.length);
        }
        return digest;
    }

    async #send(digest, type, bytes) {
        const most = this.#output.partBytes;
        const parts = partsOf(bytes, most);
        if (parts.length > MOST_PARTS) {
            throw new RunnerError('ValueTooLargeError',
                `a value of the library has ${bytes.length} bytes, more than ${MOST_PARTS * most}`);
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
        const values = await this.#read([...wanted].filter((digest) => !this.#isWarm(digest)));
        const results = [];
        for (const reference of references) {
            results.push(await this.#build(reference, values));
        }
        return results;
    }

    // Whether the last run of the thread has left the value, and it is unchanged.
    #isWarm(digest) {
        const value = this.#warm.get(digest);
        if (value === undefined || knownEntry(value)?.digest !== digest) {
            this.#warm.delete(digest);
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
        const warm = this.#warm.get(digest);
        if (warm !== undefined) {
            this.#warm.delete(digest);
            return warm;
        }
        if (!blobs.has(digest)) {
            (await this.#read([digest])).forEach((blob, name) => blobs.set(name, blob));
        }
        const { type, bytes } = blobs.get(digest);
        const value = await revive(this.#serde, type, bytes);
        if (value !== null && typeof value === 'object') {
            remember(value, entryOf(value), digest, bytes.length);
        }
        return value;
    }

    // Makes load() use the list elements of a state that was put, instead of decoding them.
    reuse(values) {
        for (const item of Object.values(values).filter(isList).flat()) {
            const entry = knownEntry(item);
            if (entry) {
                this.#warm.set(entry.digest, item);
            }
        }
    }

    // Keeps the elements of the lists of a state for the next run of the thread.
    keep(thread, values) {
        const kept = new Map();
        let size = 0;
        for (const item of Object.values(values).filter(isList).flat()) {
            const entry = knownEntry(item);
            if (entry) {
                kept.set(entry.digest, item);
                size += entry.size;
            }
        }
        keepWarm(thread, kept, size);
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
