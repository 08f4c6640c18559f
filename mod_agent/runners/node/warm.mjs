// SPDX-License-Identifier: Apache-2.0
// Values of threads whose run has ended, for the next run of the thread: it reads the
// references of the state, and finds most of its elements here instead of reading and
// decoding them. One run at a time has them: they are taken out.

// Bytes of all values as they were encoded, and of those of a thread.
const MOST_BYTES = 8 * 1024 * 1024;
const MOST_THREAD_BYTES = 4 * 1024 * 1024;

// thread -> {values: digest -> value, bytes}, the one that was kept longest ago first.
const threads = new Map();
let bytes = 0;

function drop(thread) {
    const entry = threads.get(thread);
    if (entry) {
        threads.delete(thread);
        bytes -= entry.bytes;
    }
    return entry;
}

// The values of a thread, which are not kept any longer.
export function takeWarm(thread) {
    return drop(thread)?.values ?? new Map();
}

// Keeps values that nothing else changes from now on: digest -> value. size: their bytes.
export function keepWarm(thread, values, size) {
    drop(thread);
    if (values.size === 0 || size > MOST_THREAD_BYTES) {
        return;
    }
    threads.set(thread, { values, bytes: size });
    bytes += size;
    while (bytes > MOST_BYTES) {
        drop(threads.keys().next().value);
    }
}
