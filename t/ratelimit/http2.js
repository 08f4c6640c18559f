// SPDX-License-Identifier: Apache-2.0
// Sends requests at once as streams of one HTTP/2 connection without TLS and
// prints each answer as a line of JSON: node http2.js URL COUNT [BODY]
'use strict';
const http2 = require('node:http2');

const [url, count, body] = process.argv.slice(2);
const target = new URL(url);
const session = http2.connect(target.origin);
let left = Number(count);

function send() {
    const stream = session.request({
        ':path': target.pathname, ':method': body ? 'POST' : 'GET',
    });
    let headers;
    let text = '';
    stream.on('response', (all) => { headers = all; });
    stream.on('data', (data) => { text += data; });
    stream.on('end', () => {
        console.log(JSON.stringify({ status: headers[':status'], headers, text }));
        if (--left === 0) {
            session.close();
        }
    });
    stream.end(body);
}

for (let i = 0; i < Number(count); i++) {
    send();
}
