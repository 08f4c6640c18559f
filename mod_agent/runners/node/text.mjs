// SPDX-License-Identifier: Apache-2.0
// Texts as the protocol allows them.

const BAD_TEXT = /[\0\ud800-\udfff]/;

// A text without U+0000 and unpaired surrogates, which PostgreSQL does not store.
export function cleanText(text) {
    return BAD_TEXT.test(text) ? text.replaceAll('\0', '\ufffd').toWellFormed() : text;
}
