// SPDX-License-Identifier: Apache-2.0
// A client that leaves in ways that curl cannot, for leaving.t. It reads commands
// from standard input, one a line.
//
//   http2 URL   get NAME PATH: a stream; prints "NAME STATUS" at its headers
//               reset NAME: RST_STREAM, the connection stays
//   tls URL VERSION
//               send JSON: a string of bytes; prints all that it receives
//               notify: close_notify, the TCP connection stays open
//               leave JSON: both at once
import http2 from 'node:http2';
import net from 'node:net';
import readline from 'node:readline';
import { Duplex } from 'node:stream';
import tls from 'node:tls';

function startHttp2(url) {
    const session = http2.connect(url);
    const streams = {};
    session.on('error', () => {});
    return {
        get([name, path]) {
            const stream = session.request({ ':path': path });
            streams[name] = stream;
            stream.on('response', (headers) => console.log(name, headers[':status']));
            stream.on('error', () => {});
            stream.resume();
        },
        reset([name]) {
            streams[name].close(http2.constants.NGHTTP2_CANCEL);
        },
    };
}

// The end of TLS does not end the connection below it.
function keepOpen(socket) {
    const kept = new Duplex({
        read() {},
        write(chunk, encoding, done) { socket.write(chunk, done); },
    });
    socket.on('data', (chunk) => kept.push(chunk));
    socket.on('end', () => kept.push(null));
    return kept;
}

function startTls(url, version) {
    const { hostname, port } = new URL(url);
    const socket = net.connect(port, hostname);
    const client = tls.connect({
        socket: keepOpen(socket), rejectUnauthorized: false,
        minVersion: version, maxVersion: version,
    });
    socket.on('error', () => {});
    client.on('error', () => {});
    client.on('data', (chunk) => process.stdout.write(chunk));
    return {
        send(words) { client.write(JSON.parse(words.join(' '))); },
        notify() { client.end(); },
        leave(words) { client.end(JSON.parse(words.join(' '))); },
    };
}

const [kind, ...rest] = process.argv.slice(2);
const client = kind === 'http2' ? startHttp2(...rest) : startTls(...rest);
const lines = readline.createInterface({ input: process.stdin });
lines.on('line', (line) => {
    const [verb, ...words] = line.split(' ');
    client[verb](words);
});
lines.on('close', () => process.exit(0));
