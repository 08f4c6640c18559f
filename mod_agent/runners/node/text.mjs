// SPDX-License-Identifier: Apache-2.0
// Strings that the protocol allows.

const BAD_TEXT = /[\0\ud800-\udfff]/;

// A prefix of the text that is at most `most` bytes long in a line, with its escapes.
export function cutText(text, most) {
    let found = cleanText(text.slice(0, most));
    while (Buffer.byteLength(JSON.stringify(found)) - 2 > most) {
        found = cleanText(found.slice(0, -64));
    }
    return found;
}

// A text without U+0000 and unpaired surrogates, which PostgreSQL does not store.
export function cleanText(text) {
    return BAD_TEXT.test(text) ? text.replaceAll('\0', '\ufffd').toWellFormed() : text;
}
