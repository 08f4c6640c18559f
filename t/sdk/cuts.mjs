// SPDX-License-Identifier: Apache-2.0
// Streams that are cut: the SDK resumes them by itself and receives every event
// once and in order.
import {
    collect, connect, connectCut, ids, newThread, say, scenario, upTo,
} from './tap.mjs';

const direct = connect();
const PAYLOAD = {
    input: say('sleep 1200'), streamMode: ['values', 'messages-tuple', 'updates'],
};

// The events received through cuts equal the stored ones.
async function check(t, threadId, events, places) {
    const { run_id: runId } = events[0].data;
    t.is(ids(events), upTo(events.length),
        `every event is received once and in order, cut at ${places}`);
    const stored = await collect(direct.runs.joinStream(threadId, runId, { lastEventId: '-1' }));
    t.is(events, stored, 'the events equal the stored ones');
    t.is(events.at(-1).data.messages.at(-1).type, 'ai', 'the last event has the answer');
}

// Cuts in the head of the first event, in its data, before and after its id; far
// into the run; two and three cuts; by an end and by a reset of the connection.
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
        t.is(created.length, 1, 'onRunCreated is called once');
        t.is((await direct.runs.list(threadId)).length, 1, 'the thread has one run');
    });
}

scenario('stream ended by a proxy', async (t) => {
    const threadId = await newThread(direct);
    const events = await collect(connectCut(['700.']).runs.stream(threadId, 'agent', {
        ...PAYLOAD, input: say('sleep 5000') }));
    await check(t, threadId, events, '700, while the run is pending');
});

scenario('creation whose response is cut', async (t) => {
    const threadId = await newThread(direct);
    t.ok(await t.errorOf(connectCut([0]).runs.create(threadId, 'agent', PAYLOAD)),
        'the call fails');
    t.is((await direct.runs.list(threadId)).length, 1, 'the request is not repeated');
});

scenario('joinStream cut', async (t) => {
    const threadId = await newThread(direct);
    const run = await direct.runs.create(threadId, 'agent', PAYLOAD);
    const places = [700, -1500];
    const events = await collect(connectCut(places).runs.joinStream(threadId, run.run_id));
    await check(t, threadId, events, places);
    const late = await collect(connectCut([300, 900]).runs.joinStream(threadId, run.run_id, {
        lastEventId: '4' }));
    t.is(late, events.slice(5), 'a replay after an event is resumed as well');
});

scenario('mounted below a prefix', async (t) => {
    const mounted = connect({ prefix: '/mounted' });
    const threadId = await newThread(mounted);
    const created = [];
    const events = await collect(connectCut([2000], '/mounted').runs.stream(threadId, 'agent', {
        ...PAYLOAD, onRunCreated: (about) => created.push(about) }));
    await check(t, threadId, events, [2000]);
    t.is(created, [{ run_id: events[0].data.run_id, thread_id: threadId }],
        'onRunCreated receives the ids');
});
