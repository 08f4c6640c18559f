// SPDX-License-Identifier: Apache-2.0
// The features of the libraries of both languages, with the JavaScript SDK: those that depend on
// the client. library.py has all of it.
import { collect, connect, newThread, ofKind, say, scenario } from './tap.mjs';

const client = connect();

function each(name, body) {
    for (const language of ['python', 'javascript']) {
        scenario(`${language}: ${name}`, (t) => body(t, (graph) => `${language}-${graph}`));
    }
}

async function stream(graph, threadId, options) {
    return collect(client.runs.stream(threadId ?? await newThread(client), graph, options));
}

each('streams', async (t, graph) => {
    const parts = await stream(graph('stream'), null, {
        input: say('Look!'), streamMode: ['values', 'messages-tuple', 'custom', 'tools', 'lifecycle'], streamSubgraphs: true });
    const of = (mode) => parts.filter(({ event }) => event.split('|')[0] === mode).map(({ data }) => data);
    t.is(of('messages').filter(([, { langgraph_node: node }]) => node === 'answer').map(([{ content }]) => content).join(''),
        'It is empty.', 'tokens of a model in a subgraph');
    t.is(of('custom'), [{ 'looks at': 'the shelf' }, { counts: 4 }], 'writers of a tool and of a node');
    t.is(of('tools').map(({ event }) => event), ['on_tool_start', 'on_tool_end'], 'the call of a tool');
    t.is(of('lifecycle').map(({ event }) => event).filter((event) => event === 'started').length > 0, true, 'the lifecycle of a subgraph');
    t.is(ofKind(parts, 'values').at(-1).n, 4, 'the state');
});

each('several interrupts', async (t, graph) => {
    const threadId = await newThread(client);
    const parts = await stream(graph('questions'), threadId, { input: { notes: [] }, streamMode: 'updates' });
    const asked = ofKind(parts, 'updates').flatMap((update) => update.__interrupt__ ?? []);
    t.is(asked.map(({ value }) => value.for).sort(), ['blue', 'green', 'red'], 'three branches ask at once');
    const values = await client.runs.wait(threadId, graph('questions'), {
        command: { resume: Object.fromEntries(asked.map(({ id, value }) => [id, value.for])) } });
    t.is([...values.notes].sort(), ['blue: blue', 'green: green', 'red: red'], 'each branch gets its answer');
});

each('commands, context, errors', async (t, graph) => {
    const threadId = await newThread(client);
    await client.runs.wait(threadId, graph('steps'), { input: { notes: [] } });
    const { notes } = await client.runs.wait(threadId, graph('steps'), {
        command: { update: { notes: ['by a client'] }, goto: 'two' } });
    t.is(notes, ['one', 'two', 'by a client', 'three', 'two'], 'an update, the nodes that were next, and one to go to');
    const settings = await client.runs.wait(null, graph('settings'), { input: { notes: [] }, context: { user_id: 'ann' } });
    t.is(settings.notes, ['small', 'ann', 'ann'], 'a context');
    const parts = await stream(graph('endless'), null, { input: { n: 0 }, config: { recursion_limit: 7 } });
    t.is(ofKind(parts, 'error').map(({ error }) => error), ['GraphRecursionError'], 'the limit of steps');
});
