// SPDX-License-Identifier: Apache-2.0
// The graphs of finished_tasks.t in JavaScript; parallel.py has the same ones. Nodes a and b are
// parallel, c follows both. Node b does what the input names the first time.
import { readFile } from 'node:fs/promises';
import { Annotation, interrupt, START, StateGraph } from '@langchain/langgraph';
import { count, JOB } from './job.mjs';

const State = Annotation.Root({
    ...JOB,
    done: Annotation({ reducer: (left, right) => left.concat(right), default: () => [] }),
});

async function a(state) {
    count(state, 'a');
    return { done: ['a'] };
}

async function b(state) {
    const executions = count(state, 'b');
    if (state.do === 'ask') {
        return { done: [interrupt('?')] };
    }
    if (executions > 1) {
        return { done: ['b'] };
    }
    if (state.do === 'wait') {
        await new Promise(() => {});
    }
    // Until the test has opened the pipe.
    await readFile(state.gate);
    if (state.do === 'die') {
        process.kill(process.pid, 'SIGKILL');
        await new Promise(() => {});
    }
    throw new TypeError('the first execution');
}

async function c(state) {
    count(state, 'c');
    return { done: ['c'] };
}

async function before(state) {
    count(state, 'before');
    return {};
}

export const fan = new StateGraph(State)
    .addNode('a', a).addNode('b', b).addNode('c', c)
    .addEdge(START, 'a').addEdge(START, 'b').addEdge(['a', 'b'], 'c')
    .compile();

const inner = new StateGraph(State)
    .addNode('before', before).addNode('a', a).addNode('b', b)
    .addEdge(START, 'before').addEdge('before', 'a').addEdge('before', 'b')
    .compile();

export const outer = new StateGraph(State)
    .addNode('inner', inner).addNode('c', c)
    .addEdge(START, 'inner').addEdge('inner', 'c')
    .compile();
