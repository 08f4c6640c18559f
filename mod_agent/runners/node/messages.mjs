// SPDX-License-Identifier: Apache-2.0
// The stream mode `messages`: each message so far, made of its chunks.

function isMessage(value) {
    return value !== null && typeof value === 'object' && typeof value.getType === 'function';
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
        const before = this.#open.get(id);
        if (before === undefined) {
            await this.#emit('messages/metadata', { [id]: { metadata } });
        }
        const whole = before && typeof before.concat === 'function' ? before.concat(message) : message;
        this.#open.set(id, whole);
        await this.#emit('messages/partial', [whole]);
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
