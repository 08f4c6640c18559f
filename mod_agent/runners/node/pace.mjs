// SPDX-License-Identifier: Apache-2.0
// A handler of LangChain's callbacks that the library awaits before it executes a node.
// It lets the event loop turn, so that messages of the supervisor are read even while a
// graph executes nodes that never wait, and holds a run whose lines wait for credit.

// Milliseconds that a run may execute without a turn of the loop.
const SLICE_MS = 5;

let turnedAt = 0;

async function pace(output) {
    await output.settled();
    if (performance.now() - turnedAt > SLICE_MS) {
        await new Promise((resolve) => {
            setImmediate(resolve);
        });
        turnedAt = performance.now();
    }
}

export function makePace(output) {
    return { name: 'agent_pace', awaitHandlers: true, handleChainStart: () => pace(output) };
}
