// SPDX-License-Identifier: Apache-2.0
// Errors as the protocol has them: the name of the class and the message.
import { cleanText } from './text.mjs';

const MAX_MESSAGE = 2000;

// An error of this runner, with a name for clients.
export class RunnerError extends Error {
    constructor(name, message) {
        super(message);
        this.name = name;
    }
}

function nameOf(error) {
    if (typeof error?.name === 'string' && error.name !== '' && error.name !== 'Error') {
        return error.name;
    }
    return error?.constructor?.name && error instanceof Error ? error.constructor.name : 'Error';
}

function messageOf(error) {
    try {
        return String(error instanceof Error ? error.message : error?.message ?? error);
    } catch {
        // An object without a prototype, or one whose toString() throws.
        return 'an error without a message';
    }
}

// {error, message} of anything that was thrown, as lines may have it.
export function describeError(error) {
    const message = messageOf(error);
    // Cleaned last: the cut may part a pair of surrogates.
    return {
        error: cleanText(nameOf(error).slice(0, 200)),
        message: cleanText(message.length > MAX_MESSAGE ? `${message.slice(0, MAX_MESSAGE - 1)}…` : message),
    };
}

// Whether an error says that a run was drained (by the library's RunControl).
export function isDrained(error) {
    return error?.name === 'GraphDrained';
}
