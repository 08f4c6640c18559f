// SPDX-License-Identifier: Apache-2.0
// The graph of reached_breakpoints.t in JavaScript; exits.py has the same one. The process that has executed `plan` ends
// when the library has ended, before the run does: here at the end of the library's stream.
import { readFile } from 'node:fs/promises';
import { Annotation, CompiledStateGraph, START, StateGraph } from '@langchain/langgraph';
import { count, JOB } from './job.mjs';

const gates = [];

function plan(state) {
    count(state, 'plan');
    gates.push(state.gate);
    return {};
}

function danger(state) {
    count(state, 'danger');
    return {};
}

async function* endsLate(chunks) {
    yield* chunks;
    if (gates.length > 0) {
        await readFile(gates.pop());
        process.kill(process.pid, 'SIGKILL');
    }
}

export const graph = new StateGraph(Annotation.Root(JOB))
    .addNode('plan', plan).addNode('danger', danger).addEdge(START, 'plan').addEdge('plan', 'danger').compile();
graph.stream = async function stream(...given) {
    return endsLate(await CompiledStateGraph.prototype.stream.apply(this, given));
};
