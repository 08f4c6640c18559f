// SPDX-License-Identifier: Apache-2.0
// Streams of a thread: its runs one after the other, including later ones.
import { connect, connectCut, kinds, newThread, ofKind, say, scenario } from './tap.mjs';

const client = connect();

// Reads the stream of a thread until `runs` runs have ended.
function follow(threadId, runs, { from = client, ...options } = {}) {
    const abort = new AbortController();
    const stream = from.threads.joinStream(threadId, { signal: abort.signal, ...options });
    return (async () => {
        const events = [];
        for await (const event of stream) {
            events.push(event);
            if (ofKind(events, 'run_done').length === runs) {
                abort.abort();
            }
        }
        return events;
    })();
}

async function play(threadId, text, more = {}) {
    const run = await client.runs.create(threadId, 'agent', { input: say(text), ...more });
    await client.runs.join(threadId, run.run_id);
    return run.run_id;
}

scenario('thread stream', async (t) => {
    const threadId = await newThread(client);
    const following = follow(threadId, 2, { lastEventId: '-' });
    const first = await play(threadId, 'use clock {}', { streamMode: ['values', 'updates'] });
    const second = await play(threadId, 'fail', { streamMode: 'custom' });
    const events = await following;
    t.is(kinds(events), ['error', 'metadata', 'run_done', 'updates', 'values'],
        'the stream has the events of runs that are created later');
    t.is(ofKind(events, 'metadata').map((data) => data.run_id), [first, second],
        'each run begins with its metadata');
    t.is(ofKind(events, 'run_done').map((data) => [data.run_id, data.status]),
        [[first, 'success'], [second, 'error']], 'each run ends with its status');
    t.is(await follow(threadId, 2, { lastEventId: '-' }), events,
        'the event id - replays all events');
    const { id } = events[3];
    t.is(await follow(threadId, 2, { lastEventId: id }).then((rest) => rest.length),
        events.length - 4, 'an event id replays the events after it');
});

scenario('thread stream in its modes', async (t) => {
    const threadId = await newThread(client);
    const runId = await play(threadId, 'Hello');
    const lifecycle = await follow(threadId, 1, { streamMode: 'lifecycle', lastEventId: '-' });
    t.is(lifecycle.map(({ event }) => event), ['metadata', 'run_done'],
        'lifecycle has the start and the end of the run');
    t.is(lifecycle[1].data.run_id, runId, 'run_done names the run');
    const states = await follow(threadId, 1, {
        streamMode: ['state_update', 'lifecycle'], lastEventId: '-' });
    t.is(ofKind(states, 'state_update'), [await client.threads.getState(threadId)],
        'state_update is the state after the run');
});

scenario('thread stream cut', async (t) => {
    const threadId = await newThread(client);
    const from = connectCut([700, -900, 1]);
    const following = follow(threadId, 2, { from, lastEventId: '-' });
    await play(threadId, 'sleep 300', { streamMode: ['values', 'messages-tuple'] });
    await play(threadId, 'Hello again');
    const seen = await following;
    t.is(seen, await follow(threadId, 2, { lastEventId: '-' }),
        'every event is received once and in order');
    const modes = await follow(threadId, 2, {
        from: connectCut([300]), streamMode: 'lifecycle', lastEventId: '-' });
    t.is(kinds(modes), ['metadata', 'run_done'], 'after a cut, the stream has the requested mode');
});
