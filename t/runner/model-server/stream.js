// SPDX-License-Identifier: Apache-2.0
// Event streams, valid and broken.
'use strict';

// The word in a script for the invalid byte 0xFF.
const BAD_BYTE = 'BADBYTE';

function encode(text) {
    const parts = text.split(BAD_BYTE).map((part) => Buffer.from(part, 'utf8'));
    return parts.reduce((all, part) => Buffer.concat([all, Buffer.from([0xff]), part]));
}

// Each piece is a chunk (RFC 9112, 7.1), so that the pieces do not depend on the
// network.
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

// The events up to the count-th piece of the answer.
function takeDeltas(events, count) {
    let seen = 0;
    const end = events.findIndex((event) => event.isDelta && ++seen > count);
    return end < 0 ? events : events.slice(0, end);
}

// [bytes, whether the stream ends after them, and how].
function choose(plan, events, extras) {
    const textsOf = (some) => some.map((event) => event.text);
    if (plan.cutAfter !== undefined) {
        return [join(textsOf(events), plan).subarray(0, plan.cutAfter), 'cut'];
    }
    if (plan.hangAfter !== undefined) {
        return [join(textsOf(takeDeltas(events, plan.hangAfter)), plan), 'hang'];
    }
    if (plan.garbleAfter !== undefined) {
        const some = textsOf(takeDeltas(events, plan.garbleAfter));
        return [join([...some, extras.garbled], plan), 'end'];
    }
    if (plan.errorAfter !== undefined) {
        const some = textsOf(takeDeltas(events, plan.errorAfter.count));
        return [join([...some, extras.error(plan.errorAfter)], plan), 'end'];
    }
    return [join(textsOf(events), plan), 'end'];
}

// Writes the events, with a pause before each.
function writeSlowly(response, events, paceMs) {
    const timer = setInterval(() => {
        if (events.length) {
            response.write(events.shift().text);
        } else {
            clearInterval(timer);
            response.end();
        }
    }, paceMs);
    response.on('close', () => clearInterval(timer));
}

function write(response, plan, events, extras) {
    response.writeHead(200, {
        'content-type': 'text/event-stream; charset=utf-8', 'cache-control': 'no-cache' });
    if (plan.paceMs) {
        writeSlowly(response, [...events], plan.paceMs);
        return;
    }
    const [bytes, ending] = choose(plan, events, extras);
    writePieces(response, bytes, plan.split);
    if (ending === 'cut') {
        response.socket.end();
    } else if (ending === 'end') {
        response.end();
    }
}

// events: [{text, isDelta}]; extras: a vendor's malformed event and error event;
// README.md lists the members of a plan.
exports.send = function send(call, plan, events, extras) {
    const finish = () => write(call.response, plan, events, extras);
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
