// SPDX-License-Identifier: Apache-2.0
// Background runs: records, joins, cancels, breakpoints, busy threads, errors.
import { UNKNOWN, begun, collect, connect, newThread, ofKind, say, scenario, until } from './tap.mjs';

const client = connect();

scenario('background run', async (t) => {
    const threadId = await newThread(client);
    const created = [];
    const run = await client.runs.create(threadId, 'agent', {
        input: say('Hello'), metadata: { colour: 'red' }, config: { tags: ['a'] },
        onRunCreated: (ids) => created.push(ids) });
    t.is([run.status, run.thread_id, run.metadata.colour, run.multitask_strategy],
        ['pending', threadId, 'red', 'reject'], 'create returns the pending record');
    t.is(created, [{ run_id: run.run_id, thread_id: threadId }],
        'onRunCreated receives the ids of the run');
    const values = await client.runs.join(threadId, run.run_id);
    t.is(values.messages[0].content, 'Hello', 'join returns the values');
    const done = await client.runs.get(threadId, run.run_id);
    t.is(done.status, 'success', 'after a join the status is success');
    t.is(await client.runs.join(threadId, run.run_id), values,
        'join of a finished run returns the same values');
    t.is(await client.runs.list(threadId), [done], 'list returns the record');
    t.is(await client.runs.list(threadId, { status: 'success', select: ['run_id', 'status'] }),
        [{ run_id: run.run_id, status: 'success' }], 'list filters by status and selects fields');
    t.is(await client.runs.list(threadId, { select: ['status', 'cancel_reason'] }),
        [{ status: 'success', cancel_reason: null }], 'list may select cancel_reason, which is null for a successful run');
    t.is(await client.runs.list(threadId, { status: 'error' }), [],
        'list with another status is empty');
    t.is(await client.runs.list(threadId, { offset: 1 }), [], 'list with offset 1 is empty');
    await client.runs.delete(threadId, run.run_id);
    t.is((await t.errorOf(client.runs.get(threadId, run.run_id))).status, 404,
        'a deleted run is not found');
});

scenario('assistant', async (t) => {
    const threadId = await newThread(client);
    const first = await client.runs.create(threadId, 'agent', { input: say('Hello') });
    await client.runs.join(threadId, first.run_id);
    const second = await client.runs.create(threadId, first.assistant_id, { input: say('Hello') });
    t.is(second.assistant_id, first.assistant_id, 'a run may name the assistant by its id');
    await client.runs.join(threadId, second.run_id);
});

scenario('cancel', async (t) => {
    const threadId = await newThread(client);
    const run = await client.runs.create(threadId, 'agent', { input: say('sleep 60000') });
    const joined = client.runs.join(threadId, run.run_id);
    await begun(client, threadId, run.run_id);
    await client.runs.cancel(threadId, run.run_id, true);
    t.is((await client.runs.get(threadId, run.run_id)).status, 'interrupted',
        'with wait, the run is interrupted when the call returns');
    t.is((await joined).messages[0].content, 'sleep 60000',
        'join of a cancelled run returns the values');
    const taken = await client.runs.create(threadId, 'agent', { input: say('sleep 60000') });
    await client.runs.cancel(threadId, taken.run_id, true, 'interrupt', { reason: 'taken' });
    t.ok((await client.runs.get(threadId, taken.run_id)).cancel_reason.startsWith('taken:'),
        'with the reason taken, cancel_reason of the run begins with it');
    const again = await client.runs.create(threadId, 'agent', { input: say('sleep 60000') });
    t.is(await client.runs.cancel(threadId, again.run_id), undefined,
        'without wait, the call returns nothing');
    await client.runs.join(threadId, again.run_id);
    t.is((await client.runs.get(threadId, again.run_id)).status, 'interrupted',
        'without wait, the run is interrupted later');
    const { values } = await client.threads.getState(threadId);
    const gone = await client.runs.create(threadId, 'agent', { input: say('sleep 60000') });
    await client.runs.cancel(threadId, gone.run_id, true, 'rollback');
    t.is((await t.errorOf(client.runs.get(threadId, gone.run_id))).status, 404,
        'with rollback, the run is removed');
    t.is((await client.threads.getState(threadId)).values, values,
        'with rollback, the state is that before the run');
    t.is((await t.errorOf(client.runs.cancel(threadId, UNKNOWN))).status, 404,
        'an unknown run is not found');
});

scenario('interrupt_before', async (t) => {
    const threadId = await newThread(client);
    const stopped = await collect(client.runs.stream(threadId, 'agent', {
        input: say('use clock {}'), interruptBefore: ['tools'],
        streamMode: ['values', 'updates'] }));
    t.is(ofKind(stopped, 'values').at(-1).__interrupt__, [], 'the last values have __interrupt__');
    t.is(ofKind(stopped, 'updates').at(-1), { __interrupt__: [] },
        'the last update has __interrupt__');
    const state = await client.threads.getState(threadId);
    t.is([state.next, state.tasks.map(({ name }) => name)], [['tools'], ['tools']],
        'the state names the next node');
    const [{ status }] = await client.runs.list(threadId);
    t.is(status, 'success', 'the run is success');
    t.is((await client.threads.get(threadId)).status, 'interrupted', 'the thread is interrupted');
    const resumed = await collect(client.runs.stream(threadId, 'agent', {
        input: null, streamMode: 'updates' }));
    t.is(ofKind(resumed, 'updates').map((update) => Object.keys(update)[0]), ['tools', 'agent'],
        'a run without input resumes');
    t.is((await client.threads.get(threadId)).status, 'idle',
        'after the resumed run the thread is idle');
    const run = await client.runs.create(threadId, 'agent', {
        input: say('use clock {}'), interruptAfter: '*' });
    await client.runs.join(threadId, run.run_id);
    t.is((await client.runs.get(threadId, run.run_id)).status, 'success',
        'with interruptAfter, the run is success');
    t.is((await client.threads.getState(threadId)).next, ['tools'],
        'interruptAfter stops after a node');
    await collect(client.runs.stream(threadId, 'agent', { command: { resume: 'go on' } }));
    t.is((await client.threads.getState(threadId)).next, [],
        'a run with a command resumes as well');
    t.is((await client.runs.list(threadId)).map((each) => each.status), Array(4).fill('success'),
        'all runs are success');
});

scenario('busy thread', async (t) => {
    const threadId = await newThread(client);
    const status = async ({ run_id: id }) => (await client.runs.get(threadId, id)).status;
    const start = (text, multitaskStrategy) => client.runs.create(threadId, 'agent', {
        input: say(text), multitaskStrategy });
    const first = await start('sleep 60000');
    const error = await t.errorOf(start('no', 'reject'));
    t.is(error && error.status, 409, 'with reject, a second run is a conflict');
    t.ok(/already running/.test(error && JSON.parse(error.text).detail),
        'the conflict has a reason', error && error.text);
    t.is((await client.runs.list(threadId)).length, 1, 'with reject, no second run is created');
    await begun(client, threadId, first.run_id);
    const second = await start('sleep 60001', 'interrupt');
    await client.runs.join(threadId, first.run_id);
    t.is(await status(first), 'interrupted', 'with interrupt, the run before it is interrupted');
    const third = await start('sleep 60002', 'rollback');
    await until(() => t.errorOf(status(second)));
    t.is((await t.errorOf(status(second))).status, 404,
        'with rollback, the run before it is removed');
    const fourth = await start('last', 'enqueue');
    t.is([await status(third), await status(fourth)], ['pending', 'pending'],
        'with enqueue, both runs are pending');
    await begun(client, threadId, third.run_id);
    await client.runs.cancel(threadId, third.run_id);
    const { messages } = await client.runs.join(threadId, fourth.run_id);
    t.is(await status(fourth), 'success',
        'with enqueue, the run is executed after the one before it');
    t.is(messages.filter(({ type }) => type === 'human').map(({ content }) => content),
        ['sleep 60000', 'sleep 60002', 'last'],
        'the thread has the inputs of all runs but the one rolled back');
});

scenario('refused', async (t) => {
    const threadId = await newThread(client);
    const statusOf = async (promise) => {
        const error = await t.errorOf(promise);
        return [error && error.status, typeof JSON.parse(error.text).detail];
    };
    const create = (thread, assistant, more) => client.runs.create(
        thread, assistant, { input: say('no'), ...more });
    t.is(await statusOf(create(UNKNOWN, 'agent')), [404, 'string'], 'an unknown thread is 404');
    const error = await t.errorOf(create(threadId, 'nobody'));
    t.is(error.status, 404, 'an unknown assistant is 404');
    t.ok(/^No assistant found for "nobody"/.test(JSON.parse(error.text).detail), 'the error names the unknown assistant',
        error.text);
    const mode = await t.errorOf(create(threadId, 'agent', { streamMode: ['values', 'nonsense'] }));
    t.ok(mode.status === 422 && JSON.parse(mode.text).detail.startsWith('/stream_mode/1: '),
        'the error of an unknown stream mode has its JSON pointer', mode.text);
    const bad = await t.errorOf(create(threadId, 'agent', { multitaskStrategy: 'nonsense' }));
    t.ok(bad.status === 422 && bad.text.includes('/multitask_strategy'),
        'the error of a bad member names it', bad.text);
    t.is(await statusOf(client.runs.join(threadId, UNKNOWN)), [404, 'string'],
        'a join of an unknown run is 404');
    t.is(await statusOf(collect(client.runs.joinStream(threadId, UNKNOWN))), [404, 'string'],
        'a stream of an unknown run is 404');
    t.is(await statusOf(collect(client.runs.stream(threadId, 'nobody', {}))), [404, 'string'],
        'a stream with an unknown assistant is 404');
    t.is(await client.runs.list(threadId), [], 'refused requests create no run');
});

scenario('failing run', async (t) => {
    const threadId = await newThread(client);
    const events = await collect(client.runs.stream(threadId, 'agent', { input: say('fail') }));
    t.is(events.at(-1).event, 'error', 'the stream ends with an error event');
    const { error, message } = events.at(-1).data;
    t.ok(error === 'DemoError' && /told it to/.test(message), 'the error event has name and message',
        events.at(-1));
    const [run] = await client.runs.list(threadId);
    t.is(run.status, 'error', 'the status of the run is error');
    t.is(await client.runs.join(threadId, run.run_id), { __error__: { error, message } },
        'join returns the error');
    t.is((await client.threads.get(threadId)).status, 'error', 'the status of the thread is error');
});
