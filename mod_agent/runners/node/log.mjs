// SPDX-License-Identifier: Apache-2.0
// The log: what the process and the application print, with the id of the run
// that prints it. `currentRun` holds the run in whose asynchronous calls code executes.
import { AsyncLocalStorage } from 'node:async_hooks';
import { stackOf } from './errors.mjs';

// Unread bytes that are kept; the supervisor logs 100 lines of 8,000 bytes in 10 s.
const WAITING_BYTES_MAX = 1048576;

export const currentRun = new AsyncLocalStorage();

function prefixed(text, prefix) {
    return text.replace(/^(?=[^\n])/gm, prefix);
}

// Writes to a stream whose reader may be slower than the application prints: writes
// beyond the limit are dropped and counted, since they would be kept in memory.
function bounded(stream) {
    const write = stream.write.bind(stream);
    let left = 0;
    return (chunk, encoding, done) => {
        const callback = typeof encoding === 'function' ? encoding : done;
        if (stream.writableLength > WAITING_BYTES_MAX) {
            left += 1;
            if (callback) {
                process.nextTick(callback);
            }
            return false;
        }
        if (left > 0) {
            write(`${left} more writes were not logged\n`);
            left = 0;
        }
        return write(chunk, encoding, done);
    };
}

// The text of one write, cut at WAITING_BYTES_MAX.
function textOf(chunk) {
    if (chunk.length <= WAITING_BYTES_MAX) {
        return typeof chunk === 'string' ? chunk : Buffer.from(chunk).toString('utf8');
    }
    const more = chunk.length - WAITING_BYTES_MAX;
    return `${textOf(chunk.slice(0, WAITING_BYTES_MAX))}\n${more} more bytes of a write were not logged\n`;
}

function wrap(stream) {
    const write = bounded(stream);
    stream.write = (chunk, encoding, done) => {
        const run = currentRun.getStore();
        if (!run && chunk.length <= WAITING_BYTES_MAX) {
            return write(chunk, encoding, done);
        }
        const text = textOf(chunk);
        const line = run ? prefixed(text, `run ${run.runId}: `) : text;
        const callback = typeof encoding === 'function' ? encoding : done;
        return write(line.endsWith('\n') ? line : `${line}\n`, 'utf8', callback);
    };
}

// The library makes a signal of the run's for each step, and each parallel task adds a listener to
// it: no warning about their number.
function allowListeners() {
    const emit = process.emitWarning;
    process.emitWarning = (warning, ...options) => {
        if (warning?.name !== 'MaxListenersExceededWarning' || !(warning.target instanceof AbortSignal)) {
            emit.call(process, warning, ...options);
        }
    };
}

// A stream that the application has closed fails at each write: without a listener each is an
// error that nothing handles, whose line in the log fails in turn, and so on. The other one gets a line.
function survive(stream, name, other) {
    stream.on('error', () => {});
    stream.once('error', (error) => other.write(`${name} cannot be written: ${error.message}\n`));
}

// Standard output and error get the prefix from now on.
export function installLog() {
    wrap(process.stdout);
    wrap(process.stderr);
    survive(process.stdout, 'standard output', process.stderr);
    survive(process.stderr, 'standard error', process.stdout);
    allowListeners();
}

// An error that no code handles is logged from now on, and does not end the process.
export function logErrors() {
    for (const event of ['uncaughtException', 'unhandledRejection']) {
        process.on(event, (error) => log(`an error that nothing handles: ${stackOf(error)}`));
    }
}

export function log(text) {
    process.stderr.write(`${text}\n`);
}
