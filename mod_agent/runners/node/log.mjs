// SPDX-License-Identifier: Apache-2.0
// The log: what the process and the application print, with the id of the run
// that prints it. `runs` holds the run in whose asynchronous calls code executes.
import { AsyncLocalStorage } from 'node:async_hooks';
import { writeSync } from 'node:fs';

// The supervisor logs a hundred lines in ten seconds, of 8,000 bytes.
const MOST_WAITING_BYTES = 1048576;

export const runs = new AsyncLocalStorage();

function prefixed(text, prefix) {
    return text.replace(/^(?=[^\n])/gm, prefix);
}

// Writes to a stream whose reader may be slower than the application prints: what
// is more is left out and counted, since it would wait in memory.
function bounded(stream) {
    const write = stream.write.bind(stream);
    let left = 0;
    return (chunk, encoding, done) => {
        const callback = typeof encoding === 'function' ? encoding : done;
        if (stream.writableLength > MOST_WAITING_BYTES) {
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

function wrap(stream) {
    const write = bounded(stream);
    stream.write = (chunk, encoding, done) => {
        const run = runs.getStore();
        if (!run) {
            return write(chunk, encoding, done);
        }
        const text = typeof chunk === 'string' ? chunk : Buffer.from(chunk).toString('utf8');
        const line = prefixed(text, `run ${run.runId}: `);
        const callback = typeof encoding === 'function' ? encoding : done;
        return write(line.endsWith('\n') ? line : `${line}\n`, 'utf8', callback);
    };
}

// Standard output and error get the prefix from now on. An error that no code
// handles is logged and does not end the other runs of the process.
export function installLog() {
    wrap(process.stdout);
    wrap(process.stderr);
    for (const event of ['uncaughtException', 'unhandledRejection']) {
        process.on(event, (error) => {
            process.stderr.write(`an error that nothing handles: ${error?.stack ?? error}\n`);
        });
    }
}

let isLeaving = false;

// Ends the process; any other end is the application's, which is logged with its run.
export function leave(status) {
    isLeaving = true;
    process.exit(status);
}

export function watchExit() {
    process.on('exit', (status) => {
        if (!isLeaving) {
            const run = runs.getStore();
            const prefix = run ? `run ${run.runId}: ` : '';
            writeSync(2, `${prefix}the application ended the process with status ${status}\n`);
        }
    });
}

export function log(text) {
    process.stderr.write(`${text}\n`);
}
