// SPDX-License-Identifier: Apache-2.0
// A bounded set that keeps the most recently used strings, in two generations, for runs of
// millions of steps.

// Namespaces whose last values are kept.
const NAMESPACES_MAX = 256;

// The strings that were added or found last.
export class Recent {
    #most;
    #newer = new Set();
    #older = new Set();

    // most: this many strings are kept at least, twice as many at most.
    constructor(most) {
        this.#most = most;
    }

    add(text) {
        this.#newer.add(text);
        if (this.#newer.size >= this.#most) {
            this.#older = this.#newer;
            this.#newer = new Set();
        }
    }

    has(text) {
        if (this.#newer.has(text)) {
            return true;
        }
        const isOlder = this.#older.has(text);
        if (isOlder) {
            this.add(text);
        }
        return isOlder;
    }
}

// Stores the newest entry of a namespace; evicts the oldest, never the root's.
export function keepNewest(map, ns, last) {
    map.delete(ns);
    map.set(ns, last);
    if (map.size > NAMESPACES_MAX) {
        map.delete([...map.keys()].find((name) => name !== ''));
    }
}
