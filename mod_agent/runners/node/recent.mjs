// SPDX-License-Identifier: Apache-2.0
// The strings that were added or found last: a set of all would grow without bound in runs
// of millions of steps.
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
