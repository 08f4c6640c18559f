// SPDX-License-Identifier: Apache-2.0
// The stream mode `messages`: each message so far, made of its chunks. It is sent when the chunks
// have grown by 1/32, so that the bytes are linear in its length, not quadratic; what was left
// out is sent at the end of its task, or with the state that has the message.
import { render } from './jsontext.mjs';

// Messages that may have more chunks; the oldest is forgotten.
const OPEN_MAX = 256;

function isMessage(value) {
    return value !== null && typeof value === 'object' && typeof value.getType === 'function';
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
    #hasSeen = false;

    // emit(name, data) sends an event.
    constructor(emit) {
        this.#emit = emit;
    }

    // A message of a node, or a chunk of one of a model.
    async take(message, metadata) {
        const { id } = message;
        if (!id || this.#complete.has(id)) {
            return;
        }
        if (!this.#open.has(id)) {
            this.#open.set(id, new Open(metadata?.langgraph_checkpoint_ns));
            await this.#emit('messages/metadata', { [id]: { metadata } });
        }
        const open = this.#open.get(id);
        open.add(message);
        if (open.hasGrown()) {
            await this.#emit('messages/partial', [open.show()]);
        }
        if (this.#open.size > OPEN_MAX) {
            const [[oldest, forgotten]] = this.#open;
            this.#open.delete(oldest);
            await this.#showRest([forgotten]);
        }
    }

    // The end of a task, or of the run: shows the rest of messages of which the state may have none.
    // Chunks may follow the end of their task, since the library hands them on in the background.
    async endTask(task) {
        await this.#showRest([...this.#open.values()].filter((open) => task === undefined || open.task === task));
    }

    async #showRest(messages) {
        for (const open of messages.filter(({ isShown }) => !isShown)) {
            await this.#emit('messages/partial', [open.show()]);
        }
    }

    // The state after a step: its messages that `before`, the state from which the run
    // started, does not have are complete.
    async complete(values, before) {
        const list = Array.isArray(values?.messages) ? values.messages : [];
        if (!this.#hasSeen) {
            this.#hasSeen = true;
            [before?.messages ?? []].flat().forEach((message) => this.#complete.add(message?.id));
        }
        const added = list.filter((message) => isMessage(message) && message.id && !this.#complete.has(message.id));
        added.forEach((message) => {
            this.#complete.add(message.id);
            this.#open.delete(message.id);
        });
        if (added.length > 0) {
            await this.#emit('messages/complete', added);
        }
    }
}
