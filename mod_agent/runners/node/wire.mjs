// SPDX-License-Identifier: Apache-2.0
// Lines between the main thread and the supervisor, over wire_thread.mjs, and
// the bound of the bytes that wait to be written.
import { Worker } from 'node:worker_threads';
import { exitProcess } from './exit.mjs';

// Unwritten bytes beyond which runs wait.
const PENDING_BYTES_MAX = 1024 * 1024;

export class Wire {
    #worker;
    #shared = new Int32Array(new SharedArrayBuffer(12));
    #waiting = [];
    #flushed;
    // Lines that are handed to the thread when the loop turns.
    #batch = [];

    // take(line): each line of the supervisor, as text. end(): the input is over.
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
            end();
        }
    }

    // Sends a line, without its line end; length: its bytes, with it. Returns a promise when
    // the caller should wait before it sends more, else undefined.
    write(line, length = Buffer.byteLength(line) + 1) {
        const text = `${line}\n`;
        const left = Atomics.add(this.#shared, 0, length) + length;
        this.#batch.push(text);
        if (this.#batch.length === 1) {
            setImmediate(() => this.post());
        }
        return left > PENDING_BYTES_MAX ? this.room() : undefined;
    }

    // Hands the lines to the thread now: before code that may not let the loop turn.
    post() {
        if (this.#batch.length > 0) {
            this.#worker.postMessage(this.#batch.splice(0).join(''));
        }
    }

    // Names the graphs that are being imported, for the log if one blocks this thread.
    importing(names) {
        this.#worker.postMessage({ importing: names });
    }

    // Resolves when most of the bytes are written.
    room() {
        return new Promise((resolve) => {
            this.#waiting.push(resolve);
            Atomics.store(this.#shared, 1, 1);
            if (Atomics.load(this.#shared, 0) < PENDING_BYTES_MAX
                && Atomics.compareExchange(this.#shared, 1, 1, 0) === 1) {
                this.#waiting.splice(0).forEach((done) => done());
            }
        });
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
