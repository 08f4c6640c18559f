// SPDX-License-Identifier: Apache-2.0
// Turns of the event loop: a graph whose nodes never wait would keep the process from
// reading a cancel. The library waits for the checkpoint of each step, which waits for a
// turn. Older ones do not: their runs get a handler of LangChain's callbacks, which is
// awaited before each node and also holds a run whose lines wait for credit. It costs time
// in each node, so runs of newer ones have none.

// Milliseconds that runs may execute without a turn of the loop.
const SLICE_MS = 5;

let turnedAt = 0;

// Lets the loop turn, unless it has just done so.
export async function turn() {
    if (performance.now() - turnedAt > SLICE_MS) {
        await new Promise((resolve) => {
            setImmediate(resolve);
        });
        turnedAt = performance.now();
    }
}

// The handlers of a run of a library that does not wait.
export function makeHandlers(output, records) {
    const handleChainStart = async () => {
        await records.committed();
        await output.room();
        await turn();
        output.post();
    };
    return [{ name: 'agent_pace', awaitHandlers: true, handleChainStart }];
}
