// SPDX-License-Identifier: Apache-2.0
// The thread that reads descriptor 3, and writes to 4 what the pipe has not taken from the main
// thread. It answers `ping` itself, so that a node that blocks the main thread does not
// look like a dead process, and reports how long that thread has been blocked.
//
// From the main thread: bytes to write, null to write all and end, or
// { importing: [names] }. To it: the lines of the supervisor (text) and { control: word }, of the
// end with the status of the process.
import { fstatSync, writeSync } from 'node:fs';
import net from 'node:net';
import { parentPort, workerData } from 'node:worker_threads';
import { FREE, PARTLY, WRITING } from './pipe.mjs';

// Milliseconds between two probes of the main thread.
const PROBE_MS = 500;
// Of a process whose pipe was closed by a graph.
const CLOSED_STATUS = 2;
// After the end of the input, for a main thread that does not answer.
const EXIT_MS = 2000;
// An import that blocks the main thread for so long is logged: only the supervisor can end it.
const BLOCKED_MS = 5000;
// The main thread is notified when the unwritten bytes fall below this.
const RESUME_BYTES = 256 * 1024;

// [0]: bytes that are not written yet, of both threads; [1]: 1 while the main thread waits for
// them; [2]: the number of probes that it has answered; [3]: who writes (wire.mjs);
// [4]: 1 when the process should be replaced.
const shared = new Int32Array(workerData.shared);
const input = new net.Socket({ fd: 3, readable: true, writable: false });
const output = new net.Socket({ fd: 4, readable: false, writable: true });

let pieces = [];
let probes = 0;
let probedAt = 0;
let importing = [];
let pongs = [];
// The descriptors may be closed by this thread from now on.
let isEnding = false;

// Which pipe it is; undefined for a descriptor that is closed.
function pipeOf(fd) {
    try {
        return fstatSync(fd).ino;
    } catch {
        return undefined;
    }
}

const pipes = [3, 4].map((fd) => ({ fd, ino: pipeOf(fd) }));

function probe() {
    if (Atomics.load(shared, 2) === probes) {
        probes += 1;
        probedAt = performance.now();
        parentPort.postMessage({ control: 'probe', number: probes });
    }
}

// Milliseconds since the main thread should have answered the last probe.
function busyMs() {
    return Atomics.load(shared, 2) === probes ? 0 : Math.round(performance.now() - probedAt);
}

function writeLog(line) {
    try {
        writeSync(2, `${line}\n`);
    } catch {
        // The log is full or gone.
    }
}

function logBlockedImport() {
    if (importing.length === 0 || busyMs() < BLOCKED_MS) {
        return;
    }
    writeLog(`an import has blocked the process for ${Math.round(busyMs() / 1000)} s, of the graph `
        + `${importing.toReversed().join(' or ')}`);
    importing = [];
}

// A ping is a short line; others are not parsed here.
function isPing(line) {
    if (line.length > 200 || !line.includes('"ping"')) {
        return undefined;
    }
    const message = JSON.parse(line);
    return message.type === 'ping' ? message : undefined;
}

// They wait while the main thread writes, and for the rest of its line.
function writePongs() {
    if (pongs.length === 0) {
        return;
    }
    if (Atomics.compareExchange(shared, 3, FREE, WRITING) !== FREE) {
        setImmediate(writePongs);
        return;
    }
    const bytes = Buffer.concat(pongs);
    pongs = [];
    Atomics.add(shared, 0, bytes.length);
    write(bytes);
    Atomics.store(shared, 3, FREE);
}

function takeLine(line) {
    let ping;
    try {
        ping = isPing(line);
    } catch {
        // The main thread reports the line.
    }
    if (ping) {
        const spent = Atomics.load(shared, 4) === 1 ? { spent: true } : {};
        pongs.push(Buffer.from(`${JSON.stringify({ type: 'pong', id: ping.id, busy_ms: busyMs(), ...spent })}\n`));
        writePongs();
    } else {
        parentPort.postMessage(line);
    }
}

input.on('data', (chunk) => {
    let from = 0;
    for (let end = chunk.indexOf(10); end >= 0; end = chunk.indexOf(10, from)) {
        pieces.push(chunk.subarray(from, end));
        takeLine((pieces.length === 1 ? pieces[0] : Buffer.concat(pieces)).toString('utf8'));
        pieces = [];
        from = end + 1;
    }
    if (from < chunk.length) {
        pieces.push(chunk.subarray(from));
    }
});

// No other message comes, or nothing reads the output of this process now.
function exitSoon(status) {
    isEnding = true;
    parentPort.postMessage({ control: 'end', status });
    setTimeout(() => process.kill(process.pid, 'SIGKILL'), EXIT_MS);
}

function exitForClosed(fd) {
    if (!isEnding) {
        writeLog(`descriptor ${fd} is closed: the process ends`);
    }
    exitSoon(CLOSED_STATUS);
}

// A descriptor that a graph has closed: no event tells of it while the thread waits for one of that
// pipe. Its number may be that of another file by now.
function findClosed() {
    const closed = isEnding ? undefined : pipes.find(({ fd, ino }) => pipeOf(fd) !== ino);
    if (closed) {
        exitForClosed(closed.fd);
    }
}

function endWith(error, fd) {
    if (error.code === 'EBADF') {
        exitForClosed(fd);
    } else {
        exitSoon(0);
    }
}

input.on('end', () => exitSoon(0));
input.on('error', (error) => endWith(error, 3));
output.on('error', (error) => endWith(error, 4));

function written(length) {
    const left = Atomics.sub(shared, 0, length) - length;
    if (left < RESUME_BYTES && Atomics.compareExchange(shared, 1, 1, 0) === 1) {
        parentPort.postMessage({ control: 'resume' });
    }
}

function write(bytes) {
    output.write(bytes, () => written(bytes.length));
}

parentPort.on('message', (message) => {
    if (message === null) {
        isEnding = true;
        output.end(() => parentPort.postMessage({ control: 'flushed' }));
        return;
    }
    if (!(message instanceof Uint8Array)) {
        ({ importing } = message);
        return;
    }
    write(message);
    Atomics.compareExchange(shared, 3, PARTLY, FREE);
});

setInterval(() => {
    logBlockedImport();
    findClosed();
    probe();
}, PROBE_MS);
