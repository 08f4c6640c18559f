// SPDX-License-Identifier: Apache-2.0
// Turns of the event loop: a graph whose nodes never wait would keep the process from
// reading a cancel. The library waits for the checkpoint of each step, which waits for a
// turn. Older ones do not: their runs get a handler of LangChain's callbacks, which is
// awaited before each node and also holds a run whose lines wait for credit. It costs time
// in each node, so runs of newer ones have none.

// Milliseconds that runs may execute without a turn of the loop.
const SLICE_MS = 5;
// The library's own node, which takes the input.
const START = '__start__';

let turnedAt = 0;

// Lets the loop turn, unless it has just done so: then undefined.
export function turn() {
    return performance.now() - turnedAt > SLICE_MS ? waitForTurn() : undefined;
}

async function waitForTurn() {
    await new Promise((resolve) => {
        setImmediate(resolve);
    });
    turnedAt = performance.now();
}

// Whether code of the application may execute after a checkpoint: if a channel has a value and starts
// a node, or the channel of tasks has some. Of a subgraph its caller goes on.
// triggers: channel -> the nodes of the root graph that it starts.
export function mayExecute(triggers, config, { channel_values: values }) {
    const names = Object.keys(values ?? {});
    return Object.keys(triggers ?? {}).length === 0 || Boolean(config.configurable?.checkpoint_ns)
        || values?.__pregel_tasks?.length > 0 || names.some((name) => Object.hasOwn(triggers, name) && triggers[name].some((node) => node !== START));
}

// The handlers of a run of a library that does not wait.
export function makeHandlers(output, records) {
    const handleChainStart = async () => {
        await records.committed();
        await output.room();
        await turn();
        if (records.hasResults) {
            output.post();
        }
    };
    return [{ name: 'agent_pace', awaitHandlers: true, handleChainStart }];
}
