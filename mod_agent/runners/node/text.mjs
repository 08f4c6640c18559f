// SPDX-License-Identifier: Apache-2.0
// Texts as the protocol allows them.

const BAD_TEXT = /[\0\ud800-\udfff]/;

// The beginning of a text of which a line, with its escapes, has so many bytes at most.
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
