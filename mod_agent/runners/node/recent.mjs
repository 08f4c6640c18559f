// SPDX-License-Identifier: Apache-2.0
// Texts that were added or found last, where all of a run would be too many: some runs
// take millions of steps.
export class Recent {
    #most;
    #newer = new Set();
    #older = new Set();

    // most: texts that are kept at least; twice as many at most.
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
