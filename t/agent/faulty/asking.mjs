// SPDX-License-Identifier: Apache-2.0
// The graph of lost_answers.t in JavaScript; asking.py has the same one. A subgraph asks twice; its next node ends the
// process the first time, and asks then.
import { readFile } from 'node:fs/promises';
import { Annotation, interrupt, START, StateGraph } from '@langchain/langgraph';
import { count, JOB } from './job.mjs';

const State = Annotation.Root({
    ...JOB,
    done: Annotation({ reducer: (left, right) => left.concat(right), default: () => [] }),
});

const ask = async () => ({ done: [`${interrupt('first')} ${interrupt('second')}`] });

async function later(state) {
    if (count(state, 'later') === 1) {
        // Until the test has opened the pipe.
        await readFile(state.gate);
        process.kill(process.pid, 'SIGKILL');
        await new Promise(() => {});
    }
    return { done: [interrupt('later')] };
}

const inner = new StateGraph(State)
    .addNode('ask', ask).addNode('later', later)
    .addEdge(START, 'ask').addEdge('ask', 'later')
    .compile();

export const graph = new StateGraph(State).addNode('inner', inner).addEdge(START, 'inner').compile();
