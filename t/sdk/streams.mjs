// SPDX-License-Identifier: Apache-2.0
// Streams of runs: their modes, their events, joining them.
import {
    UNKNOWN, collect, connect, ids, kinds, newThread, ofKind, say, scenario, upTo,
} from './tap.mjs';

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
    tools: ['tools'],
    // Of subgraphs, which a built-in graph has not.
    lifecycle: [],
};

for (const [mode, events] of Object.entries(MODES)) {
    scenario(`mode ${mode}`, async (t) => {
        const threadId = await newThread(client);
        const all = await collect(client.runs.stream(threadId, 'agent', {
            input: say(PROMPT), streamMode: mode }));
        t.is(kinds(all), ['metadata', ...events].sort(),
            'the stream has metadata and the events of the mode');
        t.is(all[0].event, 'metadata', 'the first event is metadata');
        t.is(ids(all), upTo(all.length), 'ids count from 0');
        const [run] = await client.runs.list(threadId);
        t.is(all[0].data, { run_id: run.run_id, attempt: 1 }, 'metadata names the run');
        t.is(run.status, 'success', 'the run has succeeded when the stream ends');
    });
}

scenario('all modes', async (t) => {
    const threadId = await newThread(client);
    const created = [];
    const events = await collect(client.runs.stream(threadId, 'agent', {
        input: say(PROMPT), streamMode: Object.keys(MODES), streamSubgraphs: true,
        onRunCreated: (about) => created.push(about) }));
    const { run_id: runId } = events[0].data;
    t.is(created, [{ run_id: runId, thread_id: threadId }], 'onRunCreated receives the ids');
    t.is(kinds(events), ['metadata', ...Object.values(MODES).flat()].sort(),
        'one stream has the events of all modes, and none of subgraphs');
    const { values } = await client.threads.getState(threadId);
    t.is(ofKind(events, 'values').at(-1), values, 'the last values are the state');
    t.is(ofKind(events, 'custom'), [{ done: 0.5 }], 'custom has the data of the graph');
    t.is(ofKind(events, 'updates').map((update) => Object.keys(update)),
        [['agent'], ['tools'], ['agent']], 'updates has one event for each node');
    const text = new Map();
    for (const [chunk] of ofKind(events, 'messages')) {
        text.set(chunk.id, (text.get(chunk.id) || '') + chunk.content);
    }
    const answer = values.messages.at(-1);
    t.is(text.get(answer.id), answer.content, 'the chunks of messages make up the answer');
    t.is(ofKind(events, 'messages/complete').at(-1), [answer], 'messages/complete has the answer');
    t.is(ofKind(events, 'tools').map(({ event, name, toolCallId }) => [event, name, toolCallId]),
        ['on_tool_start', 'on_tool_end'].map((event) => [event, 'clock', values.messages[2].tool_call_id]),
        'tools has the start and the end of the call of a tool');
    t.is(ofKind(events, 'events').at(-1).data.output, values,
        'the last of events has the state as its output');
    t.is(ofKind(events, 'checkpoints').at(-1).checkpoint.checkpoint_id,
        (await client.threads.getState(threadId)).checkpoint_id,
        'the last checkpoint is that of the state');
    t.is(await collect(client.runs.joinStream(threadId, runId, { lastEventId: '-1' })), events,
        'a finished run is replayed in full');
    t.is(await collect(client.runs.joinStream(threadId, runId, { lastEventId: '6' })),
        events.slice(7), 'a finished run is replayed after an id');
});

scenario('joinStream', async (t) => {
    const threadId = await newThread(client);
    const run = await client.runs.create(threadId, 'agent', {
        input: say('sleep 1000'), streamMode: ['values', 'messages-tuple'], streamResumable: true });
    const both = await Promise.all([
        collect(client.runs.joinStream(threadId, run.run_id)),
        collect(client.runs.joinStream(threadId, run.run_id)) ]);
    t.is(ids(both[0]), upTo(both[0].length), 'the stream has all events of the run');
    t.is(both[1], both[0], 'two streams of a run have the same events');
    t.is(kinds(both[0]), ['messages', 'metadata', 'values'], 'the stream has the modes of the run');
    t.is((await client.runs.get(threadId, run.run_id)).status, 'success',
        'the run has ended when the stream ends');
    const filtered = await collect(client.runs.joinStream(threadId, run.run_id, {
        lastEventId: '-1', streamMode: ['values'] }));
    t.is(filtered, both[0].filter(({ event }) => event !== 'messages'),
        'streamMode selects some of the modes of the run');
    t.is(await collect(client.runs.joinStream(threadId, run.run_id, {
        lastEventId: '-1', streamMode: ['values', 'messages-tuple'] })), both[0], 'streamMode may name several modes');
});

scenario('streamNamespaces', async (t) => {
    const threadId = await newThread(client);
    const payload = { input: say('Hello'), streamSubgraphs: true };
    const root = await collect(client.runs.stream(threadId, 'agent', {
        ...payload, streamNamespaces: [''] }));
    const join = (streamNamespaces) => collect(client.runs.joinStream(
        threadId, root[0].data.run_id, { lastEventId: '-1', streamNamespaces }));
    t.is(await join(), root, 'a stream of the root graph has all events of a graph without subgraphs');
    t.is(await join(['', 'tools:1']), root, 'several namespaces may be named');
    t.is(kinds(await join(['tools:1', 'tools:2'])), ['metadata'], 'an unknown namespace has no events');
});

scenario('joinStream after a checkpoint', async (t) => {
    const threadId = await newThread(client);
    const all = await collect(client.runs.stream(threadId, 'agent', {
        input: say('use clock {}'), streamMode: ['values', 'checkpoints', 'updates'] }));
    const join = (checkpointId, lastEventId = '-1') => collect(client.runs.joinStream(
        threadId, all[0].data.run_id, { lastEventId, checkpointId }));
    // The first one, of the input, has no values event.
    const [, ...checkpoints] = ofKind(all, 'checkpoints')
        .map(({ checkpoint }) => checkpoint.checkpoint_id);
    const places = upTo(all.length).filter((i) => all[i].event === 'values');
    const joined = await Promise.all(checkpoints.map((id) => join(id)));
    t.is(joined, places.map((i) => all.slice(i + 1)), 'the stream has the events after the values of the checkpoint');
    t.is(await join(checkpoints[0], '7'), all.slice(8), 'Last-Event-ID takes precedence');
    t.is(await join(UNKNOWN), all, 'an unknown checkpoint has no effect');
});

scenario('concurrent streams', async (t) => {
    const threads = await Promise.all(upTo(12).map(() => newThread(client)));
    const all = await Promise.all(threads.map((threadId, i) => collect(
        client.runs.stream(threadId, 'agent', { input: say(`I am number ${i}. sleep 300`) }))));
    t.is(all.map((events) => events.at(-1).data.messages[0].content),
        upTo(12).map((i) => `I am number ${i}. sleep 300`),
        'each stream has the events of its own run');
});

scenario('heartbeats', async (t) => {
    const threadId = await newThread(client);
    const run = await client.runs.create(threadId, 'agent', {
        input: say('sleep 6500'), streamMode: 'values' });
    const joined = client.runs.join(threadId, run.run_id);
    const events = await collect(client.runs.joinStream(threadId, run.run_id));
    t.is(events.map(({ event }) => event), ['metadata', 'values', 'values'],
        'heartbeats are not events');
    t.is(ids(events), upTo(3), 'heartbeats have no ids');
    t.is(await joined, events.at(-1).data, 'heartbeats are not part of the values of join');
});

// Reads a stream until its first values, then disconnects.
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
        'with onDisconnect cancel, the run is cancelled');
    t.is(await leave(threadId, stream(1)), 'success', 'by default, the run is executed to its end');
    const run = await client.runs.create(threadId, 'agent', { input: say('sleep 60000') });
    t.is(await leave(threadId, (signal) => client.runs.joinStream(threadId, run.run_id, {
        signal, cancelOnDisconnect: true })), 'interrupted',
        'with cancelOnDisconnect, a joined stream cancels the run');
});
