// SPDX-License-Identifier: Apache-2.0
// Errors as the protocol has them: the name of the class and the message.
import { cleanText } from './text.mjs';

const MESSAGE_MAX = 2000;

// An error of this runner, with a name for clients.
export class RunnerError extends Error {
    constructor(name, message) {
        super(message);
        this.name = name;
    }
}

// Application code can throw anything: also objects whose members throw.
function nameOf(error) {
    try {
        const names = [error?.name, error instanceof Error ? error.constructor?.name : undefined];
        return names.find((name) => typeof name === 'string' && name !== '' && name !== 'Error') ?? 'Error';
    } catch {
        return 'Error';
    }
}

function messageOf(error) {
    try {
        return String(error instanceof Error ? error.message : error?.message ?? error);
    } catch {
        // An object without a prototype, or one whose toString() throws.
        return 'an error without a message';
    }
}

// The stack of anything that was thrown, for the log.
export function stackOf(error) {
    try {
        return String(error?.stack ?? error);
    } catch {
        return messageOf(error);
    }
}

// {error, message} of anything that was thrown, as lines may have it.
export function describeError(error) {
    const message = messageOf(error);
    // Cleaned last: the cut may split a pair of surrogates.
    return {
        error: cleanText(nameOf(error).slice(0, 200)),
        message: cleanText(message.length > MESSAGE_MAX ? `${message.slice(0, MESSAGE_MAX - 1)}…` : message),
    };
}

// Whether an error says that a run was drained (by the library's RunControl).
export function isDrained(error) {
    return nameOf(error) === 'GraphDrained';
}
