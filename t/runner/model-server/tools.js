// SPDX-License-Identifier: Apache-2.0
// Tools behind a URL, good and bad ones.
'use strict';

const journal = require('./journal');

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
    // Writes until the client has gone.
    endless: (call) => {
        const write = () => {
            while (!call.response.destroyed && call.response.write('x'.repeat(65536)));
        };
        call.response.writeHead(200, { 'content-type': 'text/plain' });
        call.response.on('drain', write);
        write();
    },
    // U+0000, a byte that is no UTF-8, and half of a surrogate pair.
    dirty: (call) => {
        call.response.writeHead(200, { 'content-type': 'text/plain' });
        call.response.end(Buffer.from([0x61, 0x00, 0x62, 0xff, 0x63, 0xed, 0xa0, 0x80, 0x64]));
    },
    // The lines that the arguments ask for, one byte after the other when they
    // are not very long.
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
    // A line, and the rest when the client has gone.
    stuck: (call) => {
        call.response.writeHead(200, { 'content-type': 'application/x-ndjson; charset=utf-8' });
        call.response.write('{"custom":"half way"}\n');
    },
    // Never answers; GET /closed?key=.. tells when the client has gone.
    hang: () => {},
};

exports.answer = function answer(call) {
    const name = call.path.slice('/tool/'.length);
    journal.note(call, (call.body || {}).key || name);
    if (answers[name]) {
        answers[name](call);
    } else {
        call.json(404, { error: 'no such tool' });
    }
};
