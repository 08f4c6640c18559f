// SPDX-License-Identifier: Apache-2.0
// The lines of one run: their order, the credit that they need, the replies to
// its requests and records.
import { RunnerError } from './errors.mjs';

// PROTOCOL.md, "Flow control"; the first without the line's LF.
const LONG_LINE = 65536;
const FREE_BYTES = 262144;
const BATCH_BYTES = 65536;
// The contents of a line of each type, for a message to the author of the graph.
const CONTENTS = {
    checkpoint: 'what a step changes in the state', event: 'an event', task: 'the result of a task',
    put: 'a checkpoint of the library', put_writes: 'what a task wrote', end: 'the value of a call',
};

// Of a line with a part of a value, beside its data.
const PART_MEMBERS_BYTES = 1000;
// Arguments of a request, and of one to the store; longer ones are a breach.
const ARGS_BYTES_MAX = 4096;
const STORE_ARGS_BYTES_MAX = 4 * 1024 * 1024;
// Records with `ack` whose reply was not read; one more is a breach.
const OPEN_ACKS_MAX = 16;

export class Output {
    #wire;
    #key;
    #limits;
    // Lines that wait for credit, or come after one that does.
    #queue = [];
    #sent = 0;
    #isWaiting = false;
    // The number of lines for which credit is requested.
    #granted = 0;
    #isClosed = false;
    #isCancelled = false;
    #replies = new Map();
    // Ids of the records whose reply was not read, and the callers that wait until there are fewer.
    #openAcks = new Set();
    #ackQueue = [];
    #ids = 0;
    #turn = Promise.resolve();

    // key: {run_id, epoch}; limits: those of hello.
    constructor(wire, key, limits) {
        this.#wire = wire;
        this.#key = JSON.stringify(key).slice(1, -1);
        this.#limits = limits;
    }

    // Bytes of a part of a value: with all escapes its text is no longer than a line may be.
    get partBytes() {
        return Math.min(this.#limits.blob_part, Math.floor((this.#limits.line - PART_MEMBERS_BYTES) / 2));
    }

    get isClosed() {
        return this.#isClosed;
    }

    // Sends a message about the run; undefined, or a promise when the caller should
    // wait before it produces more. Throws for a line that is too long.
    send(type, members) {
        const text = JSON.stringify(members);
        const line = `{"type":"${type}",${this.#key}${text.length > 2 ? ',' : ''}${text.slice(1)}`;
        const bytes = Buffer.byteLength(line) + 1;
        if (bytes - 1 > this.#limits.line) {
            throw new RunnerError('ValueTooLargeError',
                `${CONTENTS[type] ?? type}${members.event ? ` "${members.event}"` : ''} has ${bytes - 1} bytes `
                + `in a line to the server, more than ${this.#limits.line}`);
        }
        if (this.#isClosed) {
            return undefined;
        }
        // A request of moderate length needs no credit, and does not count.
        const cost = type === 'request' && bytes - 1 <= LONG_LINE ? 0 : bytes;
        if (this.#queue.length === 0 && !this.#isWaiting && !this.#needsCredit(cost)) {
            this.#sent += cost;
            return this.#wire.write(line, bytes);
        }
        return this.#wait({ line, bytes, cost, mayBeDropped: type === 'event' && mayBeDropped(members) });
    }

    #needsCredit(cost) {
        return cost > 0 && (cost - 1 > LONG_LINE || this.#sent + cost > FREE_BYTES);
    }

    #wait(entry) {
        if (this.#isCancelled && entry.mayBeDropped) {
            return undefined;
        }
        return new Promise((resolve) => {
            this.#queue.push({ ...entry, resolve });
            this.#pump();
        });
    }

    // Hands the lines that have credit to the pipe now, not at the next turn of the loop.
    post() {
        this.#wire.post();
    }

    // Resolves when no line waits for credit; undefined when none does.
    room() {
        const last = this.#queue.at(-1);
        return last && new Promise((resolve) => {
            const { resolve: written } = last;
            last.resolve = (room) => {
                written(room);
                resolve(room);
            };
        });
    }

    // Writes what has credit, then requests it for the next lines.
    #pump() {
        while (!this.#isWaiting && this.#queue.length > 0) {
            if (this.#needsCredit(this.#queue[0].cost)) {
                this.#want();
            } else {
                this.#write(this.#queue.shift());
            }
        }
    }

    #write(entry) {
        this.#sent += entry.cost;
        const room = this.#wire.write(entry.line, entry.bytes);
        entry.resolve(room);
    }

    #want() {
        let bytes = this.#queue[0].cost;
        let count = 1;
        while (count < this.#queue.length && bytes + this.#queue[count].cost <= BATCH_BYTES) {
            bytes += this.#queue[count].cost;
            count += 1;
        }
        this.#isWaiting = true;
        this.#granted = count;
        this.#wire.write(`{"type":"want",${this.#key},"bytes":${bytes}}`);
    }

    // The message `go`.
    takeGo() {
        if (!this.#isWaiting) {
            return;
        }
        this.#isWaiting = false;
        this.#sent = 0;
        for (const entry of this.#queue.splice(0, this.#granted)) {
            this.#write(entry);
        }
        this.#pump();
    }

    // Events that have no credit yet are left out from now on. The replies to records may not come.
    cancel() {
        this.#isCancelled = true;
        this.#openAcks.forEach((id) => this.#replies.get(id)?.resolve());
        this.#ackQueue.splice(0).forEach((go) => go());
        for (const entry of this.#queue.splice(this.#isWaiting ? this.#granted : 0)) {
            if (entry.mayBeDropped) {
                entry.resolve();
            } else {
                this.#queue.push(entry);
            }
        }
    }

    // Sends the last line; nothing follows it. Requests that wait for their reply fail.
    async end(members) {
        const room = this.send('end', members);
        this.#isClosed = true;
        await room;
        const error = new RunnerError('RunEndedError', 'the run has ended');
        this.#replies.forEach(({ reject }) => reject(error));
        this.#replies.clear();
        this.#ackQueue.splice(0).forEach((go) => go());
    }

    #newReply() {
        this.#ids += 1;
        const id = this.#ids;
        const promise = new Promise((resolve, reject) => {
            this.#replies.set(id, { resolve, reject });
        });
        // A rejection without a waiter is not an error of the process.
        promise.catch(() => {});
        return { id, promise };
    }

    // Sends a record; resolves when it was sent, with {committed}, a promise of its commit. Rejects for
    // a line that is too long: then nothing was sent.
    async sendAcknowledged(type, members) {
        while (this.#openAcks.size >= OPEN_ACKS_MAX && !this.#isCancelled && !this.#isClosed) {
            await new Promise((resolve) => {
                this.#ackQueue.push(resolve);
            });
        }
        this.#throwIfClosed();
        if (this.#isCancelled) {
            await this.send(type, members);
            return {};
        }
        const { id, promise } = this.#newReply();
        this.#openAcks.add(id);
        try {
            const room = this.send(type, { ...members, ack: id });
            return { committed: Promise.resolve(room).then(() => promise) };
        } catch (error) {
            this.#replies.delete(id);
            this.#closeAck(id);
            throw error;
        }
    }

    #closeAck(id) {
        if (this.#openAcks.delete(id)) {
            this.#ackQueue.shift()?.();
        }
    }

    // The result and the cursor of a request; requests of a run take turns. Rejects for arguments that
    // are too long: then nothing was sent.
    request(op, args, cursor = null) {
        const most = op === 'store' ? STORE_ARGS_BYTES_MAX : ARGS_BYTES_MAX;
        const bytes = Buffer.byteLength(JSON.stringify(args));
        if (bytes > most) {
            return Promise.reject(new RunnerError('ValueError', `${op}: arguments of ${bytes} bytes, at most ${most}`));
        }
        const result = this.#turn.then(async () => {
            this.#throwIfClosed();
            const { id, promise } = this.#newReply();
            await this.send('request', { id, op, args, cursor });
            return promise;
        });
        this.#turn = result.catch(() => {});
        return result;
    }

    #throwIfClosed() {
        if (this.#isClosed) {
            throw new RunnerError('RunEndedError', 'the run has ended');
        }
    }

    // The message `reply`.
    takeReply(message) {
        const waiting = this.#replies.get(message.id);
        if (!waiting) {
            return;
        }
        this.#replies.delete(message.id);
        this.#closeAck(message.id);
        if (message.ok) {
            waiting.resolve({ result: message.result, cursor: message.cursor ?? null });
        } else {
            waiting.reject(new RunnerError(message.error.code, message.error.message));
        }
    }
}

// Whether a cancelled run may leave out the event: not `error`, and not `values` of a checkpoint.
function mayBeDropped(members) {
    return members.event !== 'error' && !(members.event === 'values' && members.checkpoint_id);
}
