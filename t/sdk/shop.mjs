// SPDX-License-Identifier: Apache-2.0
// The example applications: tools, tokens, an approval, breakpoints, updates of the
// state. The graph `shop` is the same in both languages.
import { collect, connect, newThread, ofKind, say, scenario, upTo } from './tap.mjs';

const client = connect();
const types = ({ messages }) => messages.map(({ type }) => type);
const last = ({ messages }) => messages.at(-1).content;
const identities = ({ messages }) => messages.map(({ id }) => id);

async function ask(threadId, text, options = {}) {
    return client.runs.wait(threadId, 'shop', { input: say(text), ...options });
}

async function statusOf(threadId) {
    return (await client.threads.get(threadId)).status;
}

scenario('shop: tools', async (t) => {
    const values = await ask(await newThread(client), 'price of a kettle');
    t.is(types(values), ['human', 'ai', 'tool', 'ai'], 'a run has the messages of the model and its tool');
    t.is(last(values), 'A kettle is 39 EUR.', 'the variables of langgraph.json are set');
    t.is(values.messages[1].tool_calls[0].name, 'find_price', 'the model calls a tool');
    t.is(last(await ask(null, 'price of a cup')), 'A cup is 7 EUR.', 'a run needs no thread');
});

scenario('shop: turns', async (t) => {
    const threadId = await newThread(client);
    const first = await ask(threadId, 'price of a kettle');
    const second = await ask(threadId, 'price of a cup');
    t.is(second.messages.length, 8, 'a second turn continues the thread');
    t.is(identities(second).slice(0, 4), identities(first), 'messages keep their ids');
    t.is((await client.threads.getState(threadId)).values, second, 'the state is the result of the run');
});

scenario('shop: tokens', async (t) => {
    const events = await collect(client.runs.stream(await newThread(client), 'shop', {
        input: say('price of a teapot'), streamMode: ['messages-tuple', 'updates'] }));
    const chunks = ofKind(events, 'messages').filter(([{ type }]) => /^ai/i.test(type))
        .map(([{ content }]) => content).filter((content) => content);
    t.ok(chunks.length > 1, 'a model streams its tokens', chunks);
    t.is(chunks.join(''), 'A teapot is 24 EUR.', 'the tokens are the answer');
    t.is(ofKind(events, 'updates').flatMap(Object.keys), ['agent', 'tools', 'agent'], 'each node sends its update');
});

async function order(t) {
    const threadId = await newThread(client);
    const events = await collect(client.runs.stream(threadId, 'shop', {
        input: say('order 2 cups'), streamMode: 'updates' }));
    const [interrupt] = ofKind(events, 'updates').at(-1).__interrupt__;
    t.is(interrupt.value.question, 'Order 2 x cup for 14 EUR?', 'a tool asks');
    return threadId;
}

scenario('shop: approval', async (t) => {
    const threadId = await order(t);
    t.is(await statusOf(threadId), 'interrupted', 'the thread waits');
    const state = await client.threads.getState(threadId);
    t.is(state.next, ['tools'], 'the state names the node that asks');
    t.is(state.tasks[0].interrupts[0].value.quantity, 2, 'its task has the question');
    t.is(last(await client.runs.wait(threadId, 'shop', { command: { resume: 'yes' } })),
        'Ordered 2 x cup for 14 EUR.', 'the answer resumes the tool');
    t.is(await statusOf(threadId), 'idle', 'the thread is idle again');
});

scenario('shop: refusal', async (t) => {
    const threadId = await order(t);
    t.is(last(await client.runs.wait(threadId, 'shop', { command: { resume: 'no' } })),
        'The order was not approved.', 'another answer declines');
});

scenario('shop: breakpoints', async (t) => {
    const threadId = await newThread(client);
    await ask(threadId, 'price of a cup', { interruptBefore: ['tools'] });
    t.is((await client.threads.getState(threadId)).next, ['tools'], 'a run stops before a node');
    t.is(last(await client.runs.wait(threadId, 'shop', { input: null })), 'A cup is 7 EUR.',
        'a run without input continues it');
});

scenario('shop: update', async (t) => {
    const threadId = await newThread(client);
    await ask(threadId, 'hello');
    await client.threads.updateState(threadId, { values: say('price of a cup'), asNode: '__start__' });
    const state = await client.threads.getState(threadId);
    t.is([last(state.values), state.next], ['price of a cup', ['agent']], 'an update is applied by the graph');
    t.is(last(await client.runs.wait(threadId, 'shop', { input: null })), 'A cup is 7 EUR.', 'a run continues from it');
});

scenario('shop: assistant', async (t) => {
    const [{ assistant_id: id, description }] = await client.assistants.search({ graphId: 'shop' });
    t.is(description, 'Finds products and orders them, with your approval', 'it has the description of langgraph.json');
    const { nodes } = await client.assistants.getGraph(id);
    t.is(nodes.map((node) => node.id).sort(), ['__end__', '__start__', 'agent', 'tools'], 'its drawing has the nodes');
});

scenario('shop: concurrency', async (t) => {
    const threads = await Promise.all(upTo(20).map(() => newThread(client)));
    const results = await Promise.all(threads.map((threadId, i) => ask(threadId, `order ${i + 1} cups`)));
    t.is(results.map(types), threads.map(() => ['human', 'ai']), 'twenty runs at once stop at their questions');
    const answers = await Promise.all(threads.map((threadId) => client.runs.wait(threadId, 'shop', {
        command: { resume: 'yes' } })));
    t.is(answers.map(last), threads.map((_, i) => `Ordered ${i + 1} x cup for ${(i + 1) * 7} EUR.`),
        'each has its own answer');
});
