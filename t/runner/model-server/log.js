// SPDX-License-Identifier: Apache-2.0
// The log of requests, for the tests: GET /log[?key=K]. GET /seen?key=K waits for a
// call with that key, GET /closed?key=K for its end.
'use strict';

const entries = [];
const waiting = [];

function isOver(entry) {
    return entry.is_aborted || entry.is_finished;
}

// Checks all waiting conditions.
function checkWaiting() {
    for (const each of waiting.splice(0)) {
        exports.when(each.key, each.condition, each.callback);
    }
}

// Calls callback(entry) as soon as the last call with the key meets the condition.
exports.when = function when(key, condition, callback) {
    const entry = entries.filter((each) => each.key === key).pop();
    if (entry && condition(entry)) {
        callback(entry);
    } else {
        waiting.push({ key, condition, callback });
    }
};

exports.whenSeen = (key, callback) => exports.when(key, () => true, callback);
exports.whenClosed = (key, callback) => exports.when(key, isOver, callback);

// Notes a call and follows it to its end.
exports.note = function note(call, key) {
    const entry = {
        key,
        path: call.path,
        method: call.request.method,
        headers: call.request.headers,
        query: Object.fromEntries(call.query),
        body: call.body,
        at_ms: Date.now(),
        is_finished: false,
        is_aborted: false,
    };
    entries.push(entry);
    checkWaiting();
    call.response.on('close', () => {
        entry.is_finished = call.response.writableFinished;
        entry.is_aborted = !entry.is_finished;
        checkWaiting();
    });
};

// All calls, or those with the key.
exports.read = (key) => entries.filter((entry) => key === null || entry.key === key);
