// SPDX-License-Identifier: Apache-2.0
// Tools over HTTP, valid and broken.
'use strict';

const log = require('./log');

const answers = {
    weather: (call) => call.json(200, {
        city: (call.body || {}).city || call.query.get('city'), weather: 'rain, 12 °C' }),
    text: (call) => {
        call.response.writeHead(200, { 'content-type': 'text/plain' });
        call.response.end('plain text');
    },
    broken: (call) => call.json(500, { error: 'the tool is broken' }),
    moved: (call) => {
        call.response.writeHead(302, { location: '/tool/text' });
        call.response.end();
    },
    reset: (call) => call.response.socket.destroy(),
    big: (call) => {
        call.response.writeHead(200, { 'content-type': 'text/plain' });
        call.response.end('x'.repeat(1024 * 1024 + 1));
    },
    // Writes until the client closes the connection.
    endless: (call) => {
        const write = () => {
            while (!call.response.destroyed && call.response.write('x'.repeat(65536)));
        };
        call.response.writeHead(200, { 'content-type': 'text/plain' });
        call.response.on('drain', write);
        write();
    },
    // U+0000, an invalid byte, and an unpaired surrogate.
    dirty: (call) => {
        call.response.writeHead(200, { 'content-type': 'text/plain' });
        call.response.end(Buffer.from([0x61, 0x00, 0x62, 0xff, 0x63, 0xed, 0xa0, 0x80, 0x64]));
    },
    // The lines of the arguments, in single bytes unless they are long.
    progress: (call) => {
        call.response.writeHead(call.body.status || 200,
            { 'content-type': call.body.type || 'application/x-ndjson' });
        const bytes = Buffer.from(call.body.lines.join('\n'));
        const size = bytes.length < 10000 ? 1 : 1000;
        for (let at = 0; at < bytes.length; at += size) {
            call.response.write(bytes.subarray(at, at + size));
        }
        call.response.end();
    },
    // A line, then silence.
    stuck: (call) => {
        call.response.writeHead(200, { 'content-type': 'application/x-ndjson; charset=utf-8' });
        call.response.write('{"custom":"half way"}\n');
    },
    // Never replies; GET /closed?key=.. waits until the client closes.
    hang: () => {},
};

exports.answer = function answer(call) {
    const name = call.path.slice('/tool/'.length);
    log.note(call, (call.body || {}).key || name);
    if (answers[name]) {
        answers[name](call);
    } else {
        call.json(404, { error: 'no such tool' });
    }
};
