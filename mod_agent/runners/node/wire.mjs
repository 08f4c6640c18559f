// SPDX-License-Identifier: Apache-2.0
// Lines between the main thread and the supervisor: read by wire_thread.mjs, written here, or by
// that thread while the pipe does not take them. And the bound of the bytes that wait to be written.
import { writeSync } from 'node:fs';
import { Worker } from 'node:worker_threads';
import { exitProcess } from './exit.mjs';
import { FREE, PARTLY, WRITING } from './pipe.mjs';

// Unwritten bytes beyond which runs wait.
const PENDING_BYTES_MAX = 1024 * 1024;
// Lines wait no longer for others, while the loop turns.
const WAIT_MS = 5;

export class Wire {
    #worker;
    #shared = new Int32Array(new SharedArrayBuffer(20));
    #waiting = [];
    #flushed;
    // Lines that are written after a turn of the loop that has added none, their number before it, and
    // when the first of them came.
    #batch = [];
    #before = 0;
    #since = 0;
    #isDue = false;
    isSpent = false;

    // take(line): each line of the supervisor, as text. end(status): the input is over, or a pipe
    // was closed here.
    constructor({ take, end }) {
        this.#worker = new Worker(new URL('./wire_thread.mjs', import.meta.url), {
            workerData: { shared: this.#shared.buffer },
            // The application's flags and loaders are not for this thread.
            execArgv: [],
        });
        this.#worker.on('message', (message) => {
            if (typeof message === 'string') {
                take(message);
            } else {
                this.#control(message, end);
            }
        });
        this.#worker.on('error', (error) => {
            process.stderr.write(`the thread of the pipes ended: ${error.stack}\n`);
            exitProcess(70);
        });
    }

    #control(message, end) {
        if (message.control === 'probe') {
            Atomics.store(this.#shared, 2, message.number);
        } else if (message.control === 'resume') {
            this.#waiting.splice(0).forEach((resolve) => resolve());
        } else if (message.control === 'flushed') {
            this.#flushed();
        } else {
            end(message.status);
        }
    }

    // Sends a line, without its line end; length: its bytes, with it. Returns a promise when
    // the caller should wait before it sends more, else undefined.
    write(line, length = Buffer.byteLength(line) + 1) {
        const text = `${line}\n`;
        const left = Atomics.add(this.#shared, 0, length) + length;
        this.#batch.push(text);
        if (this.#batch.length === 1) {
            this.#before = 0;
            this.#since = performance.now();
        }
        if (!this.#isDue) {
            this.#isDue = true;
            setImmediate(() => this.#endTurn());
        }
        return left > PENDING_BYTES_MAX ? this.room() : undefined;
    }

    // Each write wakes the supervisor, so lines are written together.
    #endTurn() {
        if (this.#batch.length > this.#before && performance.now() - this.#since < WAIT_MS) {
            this.#before = this.#batch.length;
            setImmediate(() => this.#endTurn());
        } else {
            this.#isDue = false;
            this.post();
        }
    }

    // Writes the lines now: before code that may not let the loop turn.
    post() {
        if (this.#batch.length === 0) {
            return;
        }
        const bytes = Buffer.from(this.#batch.splice(0).join(''), 'utf8');
        const written = this.#writeSome(bytes);
        if (written < bytes.length) {
            this.#worker.postMessage(bytes.subarray(written));
        }
        if (written > 0) {
            Atomics.sub(this.#shared, 0, written);
            this.#resume();
        }
    }

    // Writes what the pipe takes at once; returns its bytes. Only while the thread has nothing to write: its
    // `pong` must not come between the parts of a line.
    #writeSome(bytes) {
        if (Atomics.compareExchange(this.#shared, 3, FREE, WRITING) !== FREE) {
            return 0;
        }
        let written = 0;
        if (Atomics.load(this.#shared, 0) === bytes.length) {
            try {
                written = writeSync(4, bytes);
            } catch {
                // It is full; or gone, which the thread finds too.
            }
        }
        Atomics.store(this.#shared, 3, written > 0 && written < bytes.length ? PARTLY : FREE);
        return written;
    }

    // From now on `pong` asks for another process in place of this one.
    spend() {
        this.isSpent = true;
        Atomics.store(this.#shared, 4, 1);
    }

    // Names the graphs that are being imported, for the log if one blocks this thread; the last one to
    // the supervisor, if it ends the process.
    importing(names) {
        this.#worker.postMessage({ importing: names });
        this.write(JSON.stringify({ type: 'importing', graph_id: names.at(-1) ?? null }));
        this.post();
    }

    // Resolves when most of the bytes are written.
    room() {
        return new Promise((resolve) => {
            this.#waiting.push(resolve);
            Atomics.store(this.#shared, 1, 1);
            this.#resume();
        });
    }

    #resume() {
        if (Atomics.load(this.#shared, 0) < PENDING_BYTES_MAX
            && Atomics.compareExchange(this.#shared, 1, 1, 0) === 1) {
            this.#waiting.splice(0).forEach((done) => done());
        }
    }

    // Resolves when all lines are written; no more may be sent.
    flush() {
        return new Promise((resolve) => {
            this.#flushed = resolve;
            this.post();
            this.#worker.postMessage(null);
        });
    }
}
