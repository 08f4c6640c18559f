// SPDX-License-Identifier: Apache-2.0
// A graph that uses the store: it returns the items that are there, then puts those of its input.
import { Annotation, END, START, StateGraph } from '@langchain/langgraph';

const State = Annotation.Root({ key: Annotation(), size: Annotation(), seen: Annotation() });

async function remember({ key, size }, { store }) {
    const namespace = ['notes', 'javascript'];
    const item = await store.get(namespace, key);
    const found = await store.search(['notes'], { filter: { n: { $gte: 1 } }, limit: 5 });
    const seen = {
        value: item?.value.n ?? null,
        found: found.map((one) => one.key).sort(),
        sizes: found.map((one) => (one.value.text ?? '').length),
    };
    const value = { n: 1, text: 'x'.repeat(size) };
    await Promise.all(['', '-b', '-c'].map((suffix) => store.put(namespace, key + suffix, value)));
    return { seen };
}

export const graph = new StateGraph(State).addNode('remember', remember).addEdge(START, 'remember').addEdge('remember', END).compile();
