// SPDX-License-Identifier: Apache-2.0
// The checkpoints that a run has read or put, those of its puts that were not shown yet, and the
// callers that wait for a put.
import { Recent } from './recent.mjs';

const CHECKPOINTS_MAX = 65536;

export class Known {
    #isExit;
    // Ids of checkpoints that were put. The library streams each soon after its put.
    #put = new Recent(CHECKPOINTS_MAX);
    // Ids of checkpoints that were read; and the same with their steps.
    #read = new Recent(CHECKPOINTS_MAX);
    #readSteps = new Recent(CHECKPOINTS_MAX);
    // id -> {ns, resolve}: callers of waitForPut().
    #waiting = new Map();
    // Namespaces in which a put has failed: no other put follows there.
    #failed = new Set();
    // ns -> {id, parent, step, source} of the checkpoint that was put last: of the root graph, with durability `exit` of each.
    #last = new Map();
    // id -> the same of each root checkpoint that was put and not shown yet: the graph's own code may have put it.
    #unshown = new Map();

    // isExit: with durability `exit` the library puts at the end only, and shows earlier steps with another id.
    constructor(isExit) {
        this.#isExit = isExit;
    }

    addRead(id, step) {
        if (!this.#put.has(id)) {
            this.#read.add(id);
            this.#readSteps.add(`${id} ${step}`);
        }
    }

    // put: {id, parent, step, source}.
    addPut(ns, put) {
        this.#put.add(put.id);
        this.#waiting.get(put.id)?.resolve(true);
        this.#waiting.delete(put.id);
        if (ns === '' || this.#isExit) {
            this.#last.set(ns, put);
        }
        if (ns === '') {
            this.#unshown.set(put.id, put);
        }
    }

    // A put of the namespace has failed.
    failPuts(ns) {
        this.#failed.add(ns);
        for (const [id, waiting] of this.#waiting) {
            if (waiting.ns === ns) {
                this.#waiting.delete(id);
                waiting.resolve(false);
            }
        }
    }

    // The run is over: no put follows.
    close() {
        this.#waiting.forEach(({ resolve }) => resolve(false));
    }

    hasPut(id) {
        return this.#put.has(id);
    }

    hasRead(id) {
        return this.#read.has(id);
    }

    // Whether the library shows a checkpoint that was read. With durability `exit` it shows
    // later steps with the same id.
    wasRead(id, step) {
        return this.#readSteps.has(`${id} ${step}`);
    }

    // The checkpoint that was put last; undefined before it.
    lastPut(ns) {
        return this.#last.get(ns);
    }

    isUnshown(id) {
        return this.#unshown.has(id);
    }

    // The root checkpoints before `until` that were put and not shown, in order.
    unshown(until) {
        return [...this.#unshown.keys()].filter((id) => until === undefined || id < until).sort().map((id) => this.#unshown.get(id));
    }

    noteShown(id) {
        this.#unshown.delete(id);
    }

    // Whether the run puts the checkpoint; resolves when it has, or when a put of the
    // namespace fails.
    async waitForPut(ns, id) {
        if (id === undefined || this.#put.has(id)) {
            return id !== undefined;
        }
        if (this.#read.has(id) || this.#failed.has(ns) || this.#isExit) {
            return false;
        }
        return new Promise((resolve) => {
            this.#waiting.set(id, { ns, resolve });
        });
    }
}
