// SPDX-License-Identifier: Apache-2.0
// An event stream with whatever can go wrong with one.
'use strict';

// Each byte 0xFF that is no UTF-8 is written in a script as this word.
const BAD_BYTE = 'BADBYTE';

function encode(text) {
    const parts = text.split(BAD_BYTE).map((part) => Buffer.from(part, 'utf8'));
    return parts.reduce((all, part) => Buffer.concat([all, Buffer.from([0xff]), part]));
}

// Every piece is a chunk of its own on the wire (RFC 9112, 7.1), so that the
// reader's pieces do not depend on the network.
function writePieces(response, bytes, size) {
    if (!size) {
        response.write(bytes);
        return;
    }
    for (let at = 0; at < bytes.length; at += size) {
        response.write(bytes.subarray(at, at + size));
    }
}

function join(events, plan) {
    return encode(events.join('').replace(/\n/g, plan.lineEnd));
}

// The events up to and with the count-th that carries a piece of the answer.
function takeDeltas(events, count) {
    let seen = 0;
    const end = events.findIndex((event) => event.isDelta && ++seen > count);
    return end < 0 ? events : events.slice(0, end);
}

// events: {text, isDelta}; extras of a plan: see README.md.
exports.send = function send(call, plan, events, extras) {
    const { response } = call;
    const textsOf = (some) => some.map((event) => event.text);
    const begin = () => response.writeHead(200, {
        'content-type': 'text/event-stream; charset=utf-8', 'cache-control': 'no-cache' });
    const finish = () => {
        begin();
        if (plan.cutAfter !== undefined) {
            const bytes = join(textsOf(events), plan);
            writePieces(response, bytes.subarray(0, plan.cutAfter), plan.split);
            response.socket.end();
        } else if (plan.hangAfter !== undefined) {
            writePieces(response, join(textsOf(takeDeltas(events, plan.hangAfter)), plan),
                plan.split);
        } else if (plan.garbleAfter !== undefined) {
            const some = textsOf(takeDeltas(events, plan.garbleAfter));
            response.end(join([...some, extras.garbled], plan));
        } else if (plan.errorAfter !== undefined) {
            const some = textsOf(takeDeltas(events, plan.errorAfter.count));
            response.end(join([...some, extras.error(plan.errorAfter)], plan));
        } else {
            writePieces(response, join(textsOf(events), plan), plan.split);
            response.end();
        }
    };
    if (plan.delayMs) {
        setTimeout(finish, plan.delayMs);
    } else {
        finish();
    }
};

// A failure before the stream: a status, a broken connection, another body.
exports.fail = function fail(call, failure, makeError) {
    const { response } = call;
    if (failure.reset) {
        response.socket.destroy();
        return;
    }
    const headers = { ...failure.headers };
    if (failure.date_after_ms !== undefined) {
        headers['retry-after'] = new Date(Date.now() + failure.date_after_ms).toUTCString();
    }
    if (failure.body !== undefined) {
        response.writeHead(failure.status || 200, {
            'content-type': failure.type || 'text/html', ...headers });
        response.end(failure.body);
        return;
    }
    call.json(failure.status, makeError(failure.status, failure.message), headers);
};
