// SPDX-License-Identifier: Apache-2.0
// A client whose requests are refused over HTTP/2 while it sends their bodies,
// and one of a customer beside it, for http2_refusals.t: URL KEY SCENARIO [PATH].
// Prints a line of words for each scenario.
import http2 from 'node:http2';

const [url, key, scenario, path = '/unread/file'] = process.argv.slice(2);
const BODY_BYTES = 4_000_000;

function connect() {
    const session = http2.connect(url);
    session.on('error', () => {});
    return session;
}

function begin(session, headers, options) {
    const stream = session.request({ ':path': '/keyed/threads', 'content-type': 'application/json', ...headers }, options);
    const request = { stream, status: 'none' };
    stream.on('error', () => {});
    stream.resume();
    request.answered = new Promise((resolve) => {
        stream.on('response', (head) => {
            request.status = head[':status'];
            resolve(request.status);
        });
        stream.on('close', () => resolve(request.status));
    });
    request.closed = new Promise((resolve) => { stream.on('close', () => resolve(request.status)); });
    return request;
}

function post(session, headers) {
    return begin(session, { ':method': 'POST', ...headers });
}

function refused(session) {
    return post(session, { 'content-length': BODY_BYTES });
}

// A byte now and then, until the server ends the stream.
function trickle(request) {
    const timer = setInterval(() => request.stream.write('x'), 50);
    request.stream.on('close', () => clearInterval(timer));
}

const scenarios = {
    async silent() {
        return refused(connect()).closed;
    },
    async trickling() {
        const request = refused(connect());
        trickle(request);
        return request.closed;
    },
    // A body of which a part comes later, while others are discarded.
    async customer() {
        const others = [1, 2, 3, 4].map(connect).flatMap((session) => [1, 2, 3].map(() => refused(session)));
        await Promise.all(others.map((other) => other.answered));
        others.forEach(trickle);
        const request = post(connect(), { 'x-api-key': key, 'content-length': 2 });
        request.stream.write('{');
        setTimeout(() => request.stream.end('}'), 100);
        return request.closed;
    },
    // Each of two clients leaves once it has the answer, then a third one sends its whole body: how often it can, of ten times.
    async leaving() {
        let read = 0;
        for (let round = 0; round < 10; round++) {
            for (let client = 0; client < 2; client++) {
                const session = connect();
                await refused(session).answered;
                const left = new Promise((resolve) => { session.on('close', resolve); });
                session.destroy();
                await left;
            }
            const session = connect();
            const request = refused(session);
            request.stream.end(Buffer.alloc(BODY_BYTES));
            await request.closed;
            read += request.stream.writableFinished ? 1 : 0;
            session.destroy();
        }
        return read;
    },
    async same() {
        const session = connect();
        const others = [1, 2, 3, 4, 5, 6].map(() => refused(session));
        await Promise.all(others.map((other) => other.answered));
        const path = '/keyed/threads/01890000-0000-7000-8000-000000000000';
        return begin(session, { ':path': path, 'x-api-key': key }, { endStream: true }).closed;
    },
    // A GET whose body the handler does not read: how much of it is sent. The window of a stream has four of these pieces.
    async unread() {
        const request = begin(connect(), { ':method': 'GET', ':path': path, 'x-api-key': key, 'content-length': BODY_BYTES }, { endStream: false });
        let pieces = 0;
        const write = () => request.stream.write(Buffer.alloc(16_384), () => { pieces++; write(); });
        write();
        return `${await request.closed} ${pieces <= 8 ? 'window' : 'body'}`;
    },
    // Stays until its input ends.
    async held() {
        const request = refused(connect());
        return request.answered;
    },
};

console.log(await scenarios[scenario]());
if (scenario !== 'held') {
    process.exit(0);
}
process.stdin.on('end', () => process.exit(0)).resume();
