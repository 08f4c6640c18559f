// SPDX-License-Identifier: Apache-2.0
// RemoteGraph of the library: the graphs of `library/` as nodes of a graph of this process.
import { randomUUID } from 'node:crypto';
import { createRequire } from 'node:module';
import path from 'node:path';
import { begun, collect, connect, say, scenario, until } from './tap.mjs';

// Those of the application.
const require = createRequire(path.join(process.argv[2], 'remote.cjs'));
const { Annotation, Command, MemorySaver, MessagesAnnotation, START, StateGraph } = require('@langchain/langgraph');
const { RemoteGraph } = require('@langchain/langgraph/remote');

const Notes = Annotation.Root({
    n: Annotation(),
    notes: Annotation({ reducer: (left, right) => [...left, ...right], default: () => [] }),
});

function each(name, body) {
    for (const language of ['python', 'javascript']) {
        scenario(`${language}: RemoteGraph: ${name}`, (t) => body(t, (graph) => `${language}-${graph}`));
    }
}

// A graph with the remote one as a node, the remote graph, a config; options: of the remote graph.
function parentOf(graphId, schema = Notes, options = {}) {
    const remote = new RemoteGraph({ graphId, url: process.env.AGENT_TEST_URL, ...options });
    const parent = new StateGraph(schema).addNode('remote', remote).addEdge(START, 'remote')
        .compile({ checkpointer: new MemorySaver() });
    return { parent, remote, config: { configurable: { thread_id: randomUUID() } } };
}

// RemoteGraph leaves the stream at an interrupt, before its run has ended: until then another one is refused.
function runEnded({ configurable }) {
    return until(async () => (await connect().threads.get(configurable.thread_id)).status !== 'busy');
}

each('streams', async (t, graph) => {
    const { parent, config } = parentOf(graph('stream'), MessagesAnnotation);
    const parts = await collect(await parent.stream(say('Look!'), {
        ...config, streamMode: ['updates', 'custom', 'messages', 'values'], subgraphs: true }));
    const names = new Set(parts.map(([place, mode]) => [...place.map((name) => name.split(':')[0]), mode].join(' ')));
    for (const name of ['updates', 'remote updates', 'remote inner updates', 'remote inner custom']) {
        t.ok(names.has(name), `events of the remote graph: ${name}`, [...names]);
    }
    t.is(parts.filter(([, mode]) => mode === 'custom').map(([, , data]) => data), [{ 'looks at': 'the shelf' }, { counts: 4 }],
        'what its nodes write');
    t.is(parts.at(-1)[2].messages.length, 4, 'the result is in the state');
});

each('interrupts', async (t, graph) => {
    const { parent, remote, config } = parentOf(graph('deep'));
    await parent.invoke({ n: 1 }, config);
    const state = await parent.getState(config);
    t.is([state.next, state.tasks[0].interrupts[0].value], [['remote'], 'how many?'], 'the graph stops at the node');
    const inside = await remote.getState(config, { subgraphs: true });
    t.is([inside.next, inside.tasks[0].interrupts[0].value], [['level'], 'how many?'], "the state of the remote graph has the interrupt");
    await runEnded(config);
    t.is((await remote.invoke(new Command({ resume: 6 }), config)).n, 7, 'an answer resumes it');
});

each('states', async (t, graph) => {
    const { remote, config } = parentOf(graph('steps'));
    t.is((await t.errorOf(remote.invoke({ notes: [] }, config)))?.name, 'GraphInterrupt', 'a breakpoint of the remote graph interrupts the caller');
    await runEnded(config);
    const state = await remote.getState(config);
    t.is([state.values.notes, state.next], [['one', 'two'], ['three']], 'its state at a breakpoint');
    await remote.updateState(config, { notes: ['by hand'] }, 'two');
    t.is((await remote.invoke(null, config)).notes, ['one', 'two', 'by hand', 'three'], 'a run goes on from an update');
    const history = await collect(remote.getStateHistory(config));
    t.is([history.length, history[0].next], [6, []], 'its history');
    t.is(Object.keys((await remote.getGraphAsync()).nodes).sort(), ['__end__', '__start__', 'one', 'three', 'two'], 'its drawing');
    const error = await t.errorOf(parentOf(graph('fail')).parent.invoke({ n: 0 }, config));
    t.ok(String(error?.message).includes('OutOfStockError'), 'an error is the caller\'s, by its name', String(error));
});

// RemoteGraph itself has no such option: its client adds it to the runs.
function withStrategy(strategy) {
    return connect({ onRequest: (url, init) => (init.method === 'POST' && url.pathname.endsWith('/runs/stream')
        ? { ...init, body: JSON.stringify({ ...JSON.parse(init.body), multitask_strategy: strategy }) } : init) });
}

each('enqueue', async (t, graph) => {
    const client = connect();
    const remoteWith = (strategy) => parentOf(graph('waits'), Notes, { client: withStrategy(strategy) }).remote;
    const config = { configurable: { thread_id: randomUUID() } };
    const { thread_id: threadId } = config.configurable;
    const first = await client.runs.create(threadId, graph('waits'), { input: { n: 3600 }, ifNotExists: 'create' });
    await begun(client, threadId, first.run_id);
    const error = await t.errorOf(remoteWith('reject').invoke({ n: 0 }, config));
    t.ok(String(error?.message).includes('already running'), 'with reject, a busy thread refuses it', String(error));
    let isOver = false;
    const waiting = remoteWith('enqueue').invoke({ n: 0 }, config).finally(() => { isOver = true; });
    const [second] = await until(async () => {
        const runs = await client.runs.list(threadId);
        return runs.length === 2 && runs;
    });
    t.is([second.multitask_strategy, second.status, isOver], ['enqueue', 'pending', false], 'with enqueue, it waits');
    await client.runs.cancel(threadId, first.run_id);
    t.is((await waiting).notes, ['waited'], 'and is executed after the one before it');
    t.is((await client.runs.get(threadId, first.run_id)).status, 'interrupted', 'which was cancelled');
});
