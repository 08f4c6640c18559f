// SPDX-License-Identifier: Apache-2.0
// Turns of the event loop: a graph whose nodes never wait would keep the process from
// reading a cancel. The library waits for each checkpoint of a run, which waits for a
// turn. Older ones do not; their runs get a handler of LangChain's callbacks, which is
// awaited before each node and also holds a run whose lines wait for credit. It costs time
// in each node, so which of the two a library is is found out by its first checkpoints.

// Milliseconds that runs may execute without a turn of the loop.
const SLICE_MS = 5;
// Checkpoints of steps after which it is known.
const TRIALS = 3;

let turnedAt = 0;

// Lets the loop turn, unless it has just done so.
export async function turn(isForced = false) {
    if (isForced || performance.now() - turnedAt > SLICE_MS) {
        await new Promise((resolve) => {
            setImmediate(resolve);
        });
        turnedAt = performance.now();
    }
}

// Whether a copy of the library waits for the checkpoints of steps.
export class Pace {
    #waits = 0;
    #hasGoneOn = false;
    #pending = new Set();

    get isKnown() {
        return this.#hasGoneOn || this.#waits >= TRIALS;
    }

    // Handlers for the configuration of a run: none for a library that waits.
    handlers(output) {
        if (!this.#hasGoneOn && this.isKnown) {
            return undefined;
        }
        const handleChainStart = async () => {
            await output.settled();
            await turn();
            output.post();
        };
        return [{ name: 'agent_pace', awaitHandlers: true, handleChainStart }];
    }

    // A run saves the checkpoint of a step, until the returned function is called.
    begin(run) {
        this.#pending.add(run);
        return () => {
            this.#waits += this.#pending.delete(run) ? 1 : 0;
        };
    }

    // A run goes on to the next step.
    step(run) {
        this.#hasGoneOn ||= this.#pending.has(run);
    }
}
