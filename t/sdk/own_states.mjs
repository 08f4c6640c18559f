// SPDX-License-Identifier: Apache-2.0
// The graph of own_states.t: a node writes a state of its thread itself, as code with a copy of the graph may.
import { Annotation, END, START, StateGraph } from '@langchain/langgraph';

const State = Annotation.Root({ n: Annotation(), names: Annotation({ reducer: (a, b) => a.concat(b), default: () => [] }) });

async function write(state, config) {
    const own = { configurable: { thread_id: config.configurable.thread_id, __pregel_checkpointer: config.configurable.__pregel_checkpointer } };
    // 14: a state that is too long for a line.
    await graph.updateState(own, { names: [state.n === 14 ? 'x'.repeat(9 << 20) : 'own'] }, 'write');
    if (state.n === 13 || state.n === 14) {
        throw new TypeError('thirteen');
    }
    if (state.n === 15) {
        await new Promise((resolve) => setTimeout(resolve, 60_000));
    }
    return { names: ['write'] };
}

async function last() {
    return { names: ['last'] };
}

export const graph = new StateGraph(State).addNode('write', write).addNode('last', last).addEdge(START, 'write').addEdge('write', 'last').addEdge('last', END).compile();
