// SPDX-License-Identifier: Apache-2.0
// What was asked, for the tests to look at: GET /journal[?key=K]. GET /seen?key=K
// answers when a call with that key has come, GET /closed?key=K when it is over.
'use strict';

const entries = [];
const waiting = [];

function isOver(entry) {
    return entry.is_aborted || entry.is_finished;
}

// Tells those who wait for what has now happened.
function tellWaiting() {
    for (const each of waiting.splice(0)) {
        exports.when(each.key, each.condition, each.tell);
    }
}

// Calls tell(entry) as soon as the last call with the key meets the condition.
exports.when = function when(key, condition, tell) {
    const entry = entries.filter((each) => each.key === key).pop();
    if (entry && condition(entry)) {
        tell(entry);
    } else {
        waiting.push({ key, condition, tell });
    }
};

exports.whenSeen = (key, tell) => exports.when(key, () => true, tell);
exports.whenClosed = (key, tell) => exports.when(key, isOver, tell);

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
    tellWaiting();
    call.response.on('close', () => {
        entry.is_finished = call.response.writableFinished;
        entry.is_aborted = !entry.is_finished;
        tellWaiting();
    });
};

// All calls, or those with the key.
exports.read = (key) => entries.filter((entry) => key === null || entry.key === key);
