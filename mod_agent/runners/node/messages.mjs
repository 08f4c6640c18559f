// SPDX-License-Identifier: Apache-2.0
// The stream mode `messages`: each message so far, made of its chunks, and complete at its end. A
// part repeats what came before it. It is sent when the chunks have grown by 1/32, so that the
// bytes are linear in the length of the message, not quadratic.
import { render } from './jsontext.mjs';

// Messages that may have more chunks; the oldest is forgotten.
const OPEN_MAX = 256;

function isMessage(value) {
    return value !== null && typeof value === 'object' && typeof value.getType === 'function';
}

// The messages with an id of a task's result: its channels, with a message or some in each.
export function messagesOf(result) {
    const values = Object.values(result ?? {}).flatMap((value) => value?.$writes ?? [value]);
    const found = values.flat(2).filter((value) => isMessage(value) && value.id);
    return new Map(found.map((message) => [message.id, message]));
}

function isChunk(value) {
    return typeof value?.concat === 'function';
}

// The message of chunks. To add one to a message costs the length of both, so short ones come first.
function join(chunks) {
    if (chunks.length === 1) {
        return chunks[0];
    }
    const half = chunks.length >> 1;
    return join(chunks.slice(0, half)).concat(join(chunks.slice(half)));
}

// A message that may have more chunks.
class Open {
    #bytes = 0;
    #shownBytes = 0;
    #whole;
    // Chunks that the message does not have yet.
    #chunks = [];
    // Whether its task has ended without an error.
    hasEnded = false;

    constructor(task) {
        this.task = task;
    }

    get isShown() {
        return this.#bytes === this.#shownBytes;
    }

    add(message) {
        this.#bytes += JSON.stringify(render(message, true)).length;
        if (isChunk(this.#whole) && isChunk(message)) {
            this.#chunks.push(message);
        } else {
            this.#whole = message;
            this.#chunks = [];
        }
    }

    hasGrown() {
        return !isChunk(this.#whole) || this.#bytes > this.#shownBytes + Math.floor(this.#shownBytes / 32);
    }

    // The message so far, which is shown then.
    show() {
        if (this.#chunks.length > 0) {
            this.#whole = this.#whole.concat(join(this.#chunks));
            this.#chunks = [];
        }
        this.#shownBytes = this.#bytes;
        return this.#whole;
    }
}

export class Messages {
    #emit;
    // id -> the message so far.
    #open = new Map();
    #complete = new Set();

    // emit(name, data) sends an event. Its name has no namespace, as on the official servers.
    constructor(emit) {
        this.#emit = emit;
    }

    // A message of a node, or a chunk of one of a model; isWhole: all its chunks.
    async take(message, metadata, isWhole = false) {
        const { id } = message;
        if (!id || this.#complete.has(id)) {
            return;
        }
        if (!this.#open.has(id)) {
            this.#open.set(id, new Open(metadata?.langgraph_checkpoint_ns));
            await this.#emit('messages/metadata', { [id]: { metadata } });
        }
        if (isWhole || !isChunk(message)) {
            await this.#close(id, message);
            return;
        }
        const open = this.#open.get(id);
        open.add(message);
        if (open.hasGrown()) {
            await this.#showPart(open);
        }
        if (this.#open.size > OPEN_MAX) {
            const [[oldest, forgotten]] = this.#open;
            this.#open.delete(oldest);
            await this.#showRest(forgotten);
        }
    }

    // The end of a task. A message that it has returned is complete. Another one may have more chunks,
    // which the library hands on in the background: it is complete at the end of the run.
    async endTask(task, result, hasFailed) {
        const opens = [...this.#open].filter(([, open]) => open.task === task);
        const returned = opens.length > 0 ? messagesOf(result) : new Map();
        for (const [id, open] of opens) {
            open.hasEnded = !hasFailed;
            if (hasFailed) {
                await this.#showRest(open);
            } else if (returned.has(id)) {
                await this.#close(id, returned.get(id));
            }
        }
    }

    // The end of the run: messages of tasks that have failed, or were cancelled, stay parts.
    async end() {
        for (const [id, open] of [...this.#open]) {
            await (open.hasEnded ? this.#close(id, open.show()) : this.#showRest(open));
        }
    }

    async #showPart(open) {
        await this.#emit('messages/partial', [open.show()]);
    }

    async #showRest(open) {
        if (!open.isShown) {
            await this.#showPart(open);
        }
    }

    async #close(id, message) {
        this.#open.delete(id);
        this.#complete.add(id);
        await this.#emit('messages/complete', [message]);
    }
}
