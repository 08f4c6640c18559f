// SPDX-License-Identifier: Apache-2.0
// Values of threads whose run has ended, for the next run of the thread: it reads the
// references of the state, and finds most of its elements here instead of reading and
// decoding them. One run at a time has them: they are taken out.

// Bytes of all values as they were encoded, and of those of a thread.
const CACHE_BYTES_MAX = 8 * 1024 * 1024;
const THREAD_BYTES_MAX = 4 * 1024 * 1024;

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

// The values of a thread, which are no longer kept.
export function takeCached(thread) {
    return drop(thread)?.values ?? new Map();
}

// Keeps values that nothing else changes from now on: digest -> value. size: their bytes.
export function keepCached(thread, values, size) {
    drop(thread);
    if (values.size === 0 || size > THREAD_BYTES_MAX) {
        return;
    }
    threads.set(thread, { values, bytes: size });
    bytes += size;
    while (bytes > CACHE_BYTES_MAX) {
        drop(threads.keys().next().value);
    }
}
