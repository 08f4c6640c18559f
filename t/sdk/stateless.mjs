// SPDX-License-Identifier: Apache-2.0
// Runs on threads that the client does not name.
import { collect, connect, connectCut, ids, kinds, say, scenario, upTo } from './tap.mjs';

const client = connect();
const statusOf = async (t, promise) => (await t.errorOf(promise) || {}).status;

scenario('stateless create', async (t) => {
    const created = [];
    const run = await client.runs.create(null, 'agent', {
        input: say('sleep 300'), onRunCreated: (about) => created.push(about) });
    t.is([run.status, created.map(({ run_id: id }) => id)], ['pending', [run.run_id]],
        'create returns the pending run');
    const values = await client.runs.join(run.thread_id, run.run_id);
    t.is(values.messages.length, 2, 'the run can be joined on its thread');
    const kept = await client.runs.create(null, 'agent', { input: say('Hello'), onCompletion: 'keep' });
    await client.runs.join(kept.thread_id, kept.run_id);
    t.is((await client.threads.getState(kept.thread_id)).values.messages.length, 2,
        'with onCompletion keep, the thread can be read');
});

scenario('stateless wait', async (t) => {
    const values = await client.runs.wait(null, 'agent', { input: say('use clock {}') });
    t.is(values.messages.map(({ type }) => type), ['human', 'ai', 'tool', 'ai'],
        'wait returns the values');
    const error = await t.errorOf(client.runs.wait(null, 'agent', { input: say('fail') }));
    t.ok(/^DemoError: /.test(error && error.message), 'wait throws the error of the run', error);
    t.is(await statusOf(t, client.runs.wait(null, 'nobody', {})), 404,
        'an unknown assistant is 404');
});

scenario('stateless stream', async (t) => {
    const created = [];
    const events = await collect(client.runs.stream(null, 'agent', {
        input: say('use clock {}'), streamMode: ['values', 'updates', 'messages-tuple'],
        onRunCreated: (about) => created.push(about) }));
    t.is(kinds(events), ['messages', 'metadata', 'updates', 'values'],
        'the events are those of the requested modes');
    t.is(events[0].data.run_id, created[0].run_id, 'the first event is metadata');
    t.is(events.at(-1).data.messages.length, 4, 'the last event has the values');
    const failed = await collect(client.runs.stream(null, 'agent', { input: say('fail') }));
    t.is(failed.at(-1).event, 'error', 'the last event of a failed run is error');
});

for (const places of [[0], [2000], [-1500, 1]]) {
    scenario(`stateless stream cut at ${places}`, async (t) => {
        const events = await collect(connectCut(places).runs.stream(null, 'agent', {
            input: say('sleep 1200'), streamMode: ['values', 'messages-tuple'] }));
        t.is(ids(events), upTo(events.length), 'every event is received once and in order');
        t.is(events.at(-1).data.messages.length, 2, 'the last event has the answer');
    });
}

scenario('stateless batch', async (t) => {
    const texts = upTo(5).map((i) => `Hello ${i}`);
    const runs = await client.runs.createBatch(texts.map((text) => ({
        assistantId: 'agent', input: say(text) })));
    t.is(runs.map(({ status }) => status), texts.map(() => 'pending'),
        'the call returns pending runs');
    const values = await Promise.all(runs.map(
        (run) => client.runs.join(run.thread_id, run.run_id)));
    t.is(values.map(({ messages }) => messages[0].content), texts,
        'the runs are in the order of the batch');
    t.is(new Set(runs.map((run) => run.thread_id)).size, 5, 'each run has its own thread');
    const refused = await t.errorOf(client.runs.createBatch(
        [{ assistantId: 'agent', input: say('no') }, { assistantId: 'nobody' }]));
    t.is(refused && refused.status, 404, 'an unknown assistant in a batch is not found');
});
