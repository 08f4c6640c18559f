// SPDX-License-Identifier: Apache-2.0
// A graph that uses the store: it returns the items that are there, then puts those of its input.
import { Annotation, END, InMemoryStore, START, StateGraph } from '@langchain/langgraph';

const State = Annotation.Root({ key: Annotation(), size: Annotation(), seen: Annotation() });

// Options of the library that its own stores accept without an index, and conditions of one kind.
async function noteOptions(store, seen) {
    // The store of a node collects operations for another one, which has these options and conditions.
    await store.store.put(['options', 'javascript', 'a'], 'k', { n: 0 }, ['text']);
    seen.queried = (await store.search(['options'], { query: 'anything' })).length;
    const listed = async (...conditions) => {
        const matchConditions = conditions.map(([matchType, path]) => ({ matchType, path }));
        return (await store.store.batch([{ matchConditions, limit: 10, offset: 0 }]))[0];
    };
    seen.both = await listed(['prefix', ['options', '*']], ['prefix', ['*', 'javascript']], ['suffix', ['a']], ['suffix', ['javascript', '*']]);
    seen.neither = await listed(['prefix', ['options']], ['prefix', ['notes']]);
    const own = await new InMemoryStore().put([], 'k', {}).catch((error) => error);
    const error = await store.get(Array(33).fill('a'), 'k').catch((caught) => caught);
    seen.refused = error instanceof own.constructor && own.name === 'InvalidNamespaceError' ? error.message : null;
}

async function remember({ key, size }, { store }) {
    const namespace = ['notes', 'javascript'];
    const item = await store.get(namespace, key);
    const found = await store.search(['notes'], { filter: { n: { $gte: 1 } }, limit: 5 });
    const seen = {
        value: item?.value.n ?? null,
        found: found.map((one) => one.key).sort(),
        sizes: found.map((one) => (one.value.text ?? '').length),
    };
    await noteOptions(store, seen);
    const value = { n: 1, text: 'x'.repeat(size) };
    await Promise.all(['', '-b', '-c'].map((suffix) => store.put(namespace, key + suffix, value)));
    return { seen };
}

export const graph = new StateGraph(State).addNode('remember', remember).addEdge(START, 'remember').addEdge('remember', END).compile();
