// SPDX-License-Identifier: Apache-2.0
// Streams that are cut: the SDK takes them up again by itself, and sees every
// event once and in order.
import {
    collect, connect, connectCut, ids, newThread, say, scenario, upTo,
} from './tap.mjs';

const direct = connect();
const PAYLOAD = {
    input: say('sleep 1200'), streamMode: ['values', 'messages-tuple', 'updates'],
};

// The events received through cuts are those that are stored.
async function check(t, threadId, events, places) {
    const { run_id: runId } = events[0].data;
    t.is(ids(events), upTo(events.length), `every event once and in order, cut at ${places}`);
    const stored = await collect(direct.runs.joinStream(threadId, runId, { lastEventId: '-1' }));
    t.is(events, stored, '... as it is stored');
    t.is(events.at(-1).data.messages.at(-1).type, 'ai', '... up to the answer');
}

// In the head of the first event, inside its data, before its id, after
// it; far into the run; twice and three times; by an end and by a reset.
const PLANS = [
    [0], [1], [7], [60], [94], [95], [100], [101], [102], [2000], [-2000], [-1],
    [3000, 500], [-3000, 1], [500, 0], [1500, 1, -2500],
];

for (const places of PLANS) {
    scenario(`stream cut at ${places}`, async (t) => {
        const threadId = await newThread(direct);
        const created = [];
        const events = await collect(connectCut(places).runs.stream(threadId, 'agent', {
            ...PAYLOAD, onRunCreated: (about) => created.push(about) }));
        await check(t, threadId, events, places);
        t.is(created.length, 1, '... and one run was made');
        t.is((await direct.runs.list(threadId)).length, 1, '... of one');
    });
}

scenario('joinStream cut', async (t) => {
    const threadId = await newThread(direct);
    const run = await direct.runs.create(threadId, 'agent', PAYLOAD);
    const places = [700, -1500];
    const events = await collect(connectCut(places).runs.joinStream(threadId, run.run_id));
    await check(t, threadId, events, places);
    const late = await collect(connectCut([300, 900]).runs.joinStream(threadId, run.run_id, {
        lastEventId: '4' }));
    t.is(late, events.slice(5), 'a replay that begins after an event goes on after the last');
});

scenario('mounted below a prefix', async (t) => {
    const mounted = connect({ prefix: '/mounted' });
    const threadId = await newThread(mounted);
    const created = [];
    const events = await collect(connectCut([2000], '/mounted').runs.stream(threadId, 'agent', {
        ...PAYLOAD, onRunCreated: (about) => created.push(about) }));
    await check(t, threadId, events, [2000]);
    t.is(created, [{ run_id: events[0].data.run_id, thread_id: threadId }],
        'onRunCreated gets the ids');
});
