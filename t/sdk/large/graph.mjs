// SPDX-License-Identifier: Apache-2.0
// The graph of large_values.t in JavaScript: `do` of the input names what its node does.
import { Annotation, END, getWriter, START, StateGraph } from '@langchain/langgraph';

const Pile = Annotation.Root({
    do: Annotation(),
    parts: Annotation({ reducer: (a, b) => a.concat(b), default: () => [] }),
    text: Annotation(),
});

function work({ do: task, parts }) {
    switch (task) {
    case 'wait':
        return new Promise(() => {});
    case 'pile':
        return parts.length === 750
            ? { text: 'x'.repeat(6000000) }
            : { parts: Array.from({ length: 250 }, () => ({ text: 'x'.repeat(20000) })) };
    case 'return too much':
        return { text: 'x'.repeat(9000000) };
    case 'write too much':
        getWriter()('x'.repeat(9000000));
        break;
    default:
    }
    return { parts: [{ text: 'one more' }] };
}

export const graph = new StateGraph(Pile)
    .addNode('work', work)
    .addEdge(START, 'work')
    .addConditionalEdges('work', ({ do: task, text }) => (task !== 'pile' || text ? END : 'work'))
    .compile();
