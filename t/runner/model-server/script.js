// SPDX-License-Identifier: Apache-2.0
// The script of a reply: the last text of the user may be `script {JSON}`;
// README.md lists its members.
'use strict';

const attempts = new Map();

function wordsOf(text) {
    return text.match(/\s*\S+\s*$|\s*\S+/g) || (text ? [text] : []);
}

exports.countWords = (text) => (String(text).match(/\S+/g) || []).length;

// The script inside a text; {} when there is none.
function readScript(text) {
    const match = /script (\{.*\})/s.exec(text);
    return match ? JSON.parse(match[1]) : {};
}

// Repeats each piece, then all of them.
function multiply(deltas, repeat, times) {
    return Array(times).fill(deltas.map((delta) => delta.repeat(repeat))).flat();
}

// The answer to the results of tools.
function describeResults(results) {
    return `The tools said: ${results.join(' | ')}`;
}

// The failure of this attempt with the script's key, if any.
function takeFailure(script) {
    if (!script.failures) {
        return undefined;
    }
    if (!script.key) {
        throw new Error('failures need a key');
    }
    const attempt = attempts.get(script.key) || 0;
    attempts.set(script.key, attempt + 1);
    return script.failures[attempt];
}

// prompt: the last text of the user; results: those of the tools after it. By
// default the answer repeats the prompt, so that it depends on it.
exports.plan = function plan(prompt, results) {
    const script = readScript(prompt);
    const isDone = results.length > 0;
    const text = isDone
        ? script.after || describeResults(results)
        : script.text !== undefined ? script.text
            : script.tools ? 'Let me ask.' : `You said: ${prompt}`;
    return {
        key: script.key || '',
        failure: takeFailure(script),
        deltas: multiply(!isDone && script.deltas ? script.deltas : wordsOf(text),
            script.repeat || 1, script.times || 1),
        tools: isDone ? [] : script.tools || [],
        argumentsSize: script.arguments_size || 5,
        split: script.split || 0,
        delayMs: script.delay_ms || 0,
        paceMs: script.pace_ms || 0,
        hangAfter: isDone ? undefined : script.hang_after,
        cutAfter: script.cut_after,
        garbleAfter: script.garble_after,
        errorAfter: script.error_after,
        stopReason: script.stop_reason,
        stopSequence: script.stop_sequence || null,
        lineEnd: script.line_end || '\n',
        quirks: script.quirks || {},
    };
};

// JSON text of a tool's arguments; `raw` is sent as it is.
exports.argumentsOf = (tool) => (tool.raw !== undefined
    ? tool.raw : JSON.stringify(tool.args || {}));

// A text in pieces of size characters: an escape may end up in two of them.
exports.cut = function cut(text, size) {
    const pieces = [];
    for (let at = 0; at < text.length; at += size) {
        pieces.push(text.slice(at, at + size));
    }
    return pieces;
};
