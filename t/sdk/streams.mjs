// SPDX-License-Identifier: Apache-2.0
// Streams of runs: every mode, what they hold, joining them.
import { collect, connect, ids, kinds, newThread, ofKind, say, scenario, upTo } from './tap.mjs';

const client = connect();
const PROMPT = 'custom {"done": 0.5} and use clock {}';

// The events of each mode.
const MODES = {
    values: ['values'],
    updates: ['updates'],
    messages: ['messages/complete', 'messages/metadata', 'messages/partial'],
    'messages-tuple': ['messages'],
    custom: ['custom'],
    tasks: ['tasks'],
    checkpoints: ['checkpoints'],
    debug: ['debug'],
    events: ['events'],
};

for (const [mode, events] of Object.entries(MODES)) {
    scenario(`mode ${mode}`, async (t) => {
        const threadId = await newThread(client);
        const all = await collect(client.runs.stream(threadId, 'agent', {
            input: say(PROMPT), streamMode: mode }));
        t.is(kinds(all), ['metadata', ...events].sort(), 'its own events and metadata');
        t.is(all[0].event, 'metadata', 'metadata comes first');
        t.is(ids(all), upTo(all.length), 'ids count from 0');
        const [run] = await client.runs.list(threadId);
        t.is(all[0].data, { run_id: run.run_id, attempt: 1 }, 'metadata names the run');
        t.is(run.status, 'success', 'the stream ends with the run');
    });
}

scenario('all modes', async (t) => {
    const threadId = await newThread(client);
    const created = [];
    const events = await collect(client.runs.stream(threadId, 'agent', {
        input: say(PROMPT), streamMode: Object.keys(MODES), streamSubgraphs: true,
        onRunCreated: (about) => created.push(about) }));
    const { run_id: runId } = events[0].data;
    t.is(created, [{ run_id: runId, thread_id: threadId }], 'onRunCreated gets the ids');
    t.is(kinds(events), ['metadata', ...Object.values(MODES).flat()].sort(),
        'come together, without subgraphs under their own names');
    const { values } = await client.threads.getState(threadId);
    t.is(ofKind(events, 'values').at(-1), values, 'the last values are the state');
    t.is(ofKind(events, 'custom'), [{ done: 0.5 }], 'custom is what the graph said');
    t.is(ofKind(events, 'updates').map((update) => Object.keys(update)),
        [['agent'], ['tools'], ['agent']], 'an update comes from each node');
    const text = new Map();
    for (const [chunk] of ofKind(events, 'messages')) {
        text.set(chunk.id, (text.get(chunk.id) || '') + chunk.content);
    }
    const answer = values.messages.at(-1);
    t.is(text.get(answer.id), answer.content, 'chunks add up to the answer');
    t.is(ofKind(events, 'messages/complete').at(-1), [answer], '... which comes complete');
    t.is(ofKind(events, 'events').at(-1).data.output, values, 'the traced graph ends with the state');
    t.is(ofKind(events, 'checkpoints').at(-1).checkpoint.checkpoint_id,
        (await client.threads.getState(threadId)).checkpoint_id,
        'the last checkpoint is that of the state');
    t.is(await collect(client.runs.joinStream(threadId, runId, { lastEventId: '-1' })), events,
        'the finished run is replayed in full');
    t.is(await collect(client.runs.joinStream(threadId, runId, { lastEventId: '6' })),
        events.slice(7), '... or from the event after an id');
});

scenario('joinStream', async (t) => {
    const threadId = await newThread(client);
    const run = await client.runs.create(threadId, 'agent', {
        input: say('sleep 1000'), streamMode: ['values', 'messages-tuple'], streamResumable: true });
    const both = await Promise.all([
        collect(client.runs.joinStream(threadId, run.run_id)),
        collect(client.runs.joinStream(threadId, run.run_id)) ]);
    t.is(ids(both[0]), upTo(both[0].length), 'follows a run to its end');
    t.is(both[1], both[0], '... for as many as like');
    t.is(kinds(both[0]), ['messages', 'metadata', 'values'], '... in the modes of the run');
    t.is((await client.runs.get(threadId, run.run_id)).status, 'success', '... which has ended then');
    const filtered = await collect(client.runs.joinStream(threadId, run.run_id, {
        lastEventId: '-1', streamMode: ['values'] }));
    t.is(filtered, both[0].filter(({ event }) => event !== 'messages'), '... in one of its modes');
});

scenario('streams at once', async (t) => {
    const threads = await Promise.all(upTo(12).map(() => newThread(client)));
    const all = await Promise.all(threads.map((threadId, i) => collect(
        client.runs.stream(threadId, 'agent', { input: say(`I am number ${i}. sleep 300`) }))));
    t.is(all.map((events) => events.at(-1).data.messages[0].content),
        upTo(12).map((i) => `I am number ${i}. sleep 300`), 'each has its own');
});

scenario('silence', async (t) => {
    const threadId = await newThread(client);
    const run = await client.runs.create(threadId, 'agent', {
        input: say('sleep 6500'), streamMode: 'values' });
    const joined = client.runs.join(threadId, run.run_id);
    const events = await collect(client.runs.joinStream(threadId, run.run_id));
    t.is(events.map(({ event }) => event), ['metadata', 'values', 'values'],
        'heartbeats are not events');
    t.is(ids(events), upTo(3), '... and have no ids');
    t.is(await joined, events.at(-1).data, '... and no part of a join');
});

// Streams a long run until its first values, then leaves.
async function leave(threadId, stream) {
    const abort = new AbortController();
    for await (const { event } of stream(abort.signal)) {
        if (event === 'values') {
            abort.abort();
        }
    }
    const [run] = await client.runs.list(threadId);
    await client.runs.join(threadId, run.run_id);
    return (await client.runs.get(threadId, run.run_id)).status;
}

scenario('client that leaves', async (t) => {
    const threadId = await newThread(client);
    const stream = (seconds, more) => (signal) => client.runs.stream(threadId, 'agent', {
        input: say(`sleep ${seconds}000`), signal, ...more });
    t.is(await leave(threadId, stream(60, { onDisconnect: 'cancel' })), 'interrupted',
        'with onDisconnect cancel its run is cancelled');
    t.is(await leave(threadId, stream(1)), 'success', 'without it the run goes on');
    const run = await client.runs.create(threadId, 'agent', { input: say('sleep 60000') });
    t.is(await leave(threadId, (signal) => client.runs.joinStream(threadId, run.run_id, {
        signal, cancelOnDisconnect: true })), 'interrupted', 'a joined stream can cancel it too');
});
