#!/usr/bin/env node
// SPDX-License-Identifier: Apache-2.0
// The model test server: serves Anthropic's Messages API and OpenAI's Chat
// Completions on 127.0.0.1 and prints its address as its first line. README.md
// describes the scripts in prompts. It exits at the end of stdin.
'use strict';

const fs = require('fs');
const http = require('http');
const https = require('https');
const anthropic = require('./anthropic');
const openai = require('./openai');
const tools = require('./tools');
const log = require('./log');

const routes = {
    'POST /v1/messages': anthropic.answer,
    'POST /v1/chat/completions': openai.answer,
    'GET /log': (call) => call.json(200, log.read(call.query.get('key'))),
    'GET /seen': (call) => log.whenSeen(call.query.get('key'),
        (entry) => call.json(200, entry)),
    'GET /closed': (call) => log.whenClosed(call.query.get('key'),
        (entry) => call.json(200, entry)),
};

function readBody(request, done) {
    const pieces = [];
    request.on('data', (piece) => pieces.push(piece));
    request.on('end', () => done(Buffer.concat(pieces)));
}

function parse(text) {
    try {
        return JSON.parse(text);
    } catch (error) {
        return undefined;
    }
}

// One request, for its handler.
function makeCall(request, response, bytes) {
    const url = new URL(request.url, 'http://localhost');
    return {
        request,
        response,
        path: url.pathname,
        query: url.searchParams,
        text: bytes.toString('utf8'),
        body: parse(bytes.toString('utf8')),
        json(status, value, headers) {
            response.writeHead(status, {
                'content-type': 'application/json', ...headers });
            response.end(JSON.stringify(value));
        },
    };
}

function serve(request, response) {
    response.socket.setNoDelay(true);
    readBody(request, (bytes) => {
        const call = makeCall(request, response, bytes);
        const handler = routes[`${request.method} ${call.path}`]
            || (call.path.startsWith('/tool/') && tools.answer);
        if (handler) {
            handler(call);
        } else {
            call.json(404, { error: { type: 'not_found_error', message: 'Not found' } });
        }
    });
}

// With two arguments, a key and a certificate, the server uses TLS.
const [keyFile, certificateFile] = process.argv.slice(2);
const server = keyFile
    ? https.createServer({
        key: fs.readFileSync(keyFile), cert: fs.readFileSync(certificateFile) }, serve)
    : http.createServer(serve);
server.keepAliveTimeout = 60000;
server.listen(0, '127.0.0.1', () => {
    const scheme = keyFile ? 'https' : 'http';
    process.stdout.write(`${scheme}://127.0.0.1:${server.address().port}\n`);
});
process.stdin.on('end', () => process.exit(0)).resume();
