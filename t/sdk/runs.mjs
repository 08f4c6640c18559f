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
        ['pending', threadId, 'red', 'reject'], 'it is returned at once');
    t.is(created, [{ run_id: run.run_id, thread_id: threadId }], 'onRunCreated gets its ids');
    const values = await client.runs.join(threadId, run.run_id);
    t.is(values.messages[0].content, 'Hello', 'join returns the values');
    const done = await client.runs.get(threadId, run.run_id);
    t.is(done.status, 'success', 'then the record says success');
    t.is(await client.runs.join(threadId, run.run_id), values, 'a join of it returns at once');
    t.is(await client.runs.list(threadId), [done], 'it is listed');
    t.is(await client.runs.list(threadId, { status: 'success', select: ['run_id', 'status'] }),
        [{ run_id: run.run_id, status: 'success' }], '... by status, with the fields asked for');
    t.is(await client.runs.list(threadId, { status: 'error' }), [], '... and not by another');
    t.is(await client.runs.list(threadId, { offset: 1 }), [], '... once');
    await client.runs.delete(threadId, run.run_id);
    t.is((await t.errorOf(client.runs.get(threadId, run.run_id))).status, 404, 'deleted it is gone');
});

scenario('assistant', async (t) => {
    const threadId = await newThread(client);
    const first = await client.runs.create(threadId, 'agent', { input: say('Hello') });
    await client.runs.join(threadId, first.run_id);
    const second = await client.runs.create(threadId, first.assistant_id, { input: say('Hello') });
    t.is(second.assistant_id, first.assistant_id, 'its id means the same as its name');
    await client.runs.join(threadId, second.run_id);
});

scenario('cancel', async (t) => {
    const threadId = await newThread(client);
    const run = await client.runs.create(threadId, 'agent', { input: say('sleep 60000') });
    const joined = client.runs.join(threadId, run.run_id);
    await begun(client, threadId, run.run_id);
    await client.runs.cancel(threadId, run.run_id, true);
    t.is((await client.runs.get(threadId, run.run_id)).status, 'interrupted',
        'with wait the run is interrupted when it returns');
    t.is((await joined).messages[0].content, 'sleep 60000', 'a join of it returns the values');
    const again = await client.runs.create(threadId, 'agent', { input: say('sleep 60000') });
    t.is(await client.runs.cancel(threadId, again.run_id), undefined, 'without wait it returns at once');
    await client.runs.join(threadId, again.run_id);
    t.is((await client.runs.get(threadId, again.run_id)).status, 'interrupted',
        '... and the run is interrupted soon');
    const { values } = await client.threads.getState(threadId);
    const gone = await client.runs.create(threadId, 'agent', { input: say('sleep 60000') });
    await client.runs.cancel(threadId, gone.run_id, true, 'rollback');
    t.is((await t.errorOf(client.runs.get(threadId, gone.run_id))).status, 404,
        'with rollback the run is gone');
    t.is((await client.threads.getState(threadId)).values, values, '... and what it had done');
    t.is((await t.errorOf(client.runs.cancel(threadId, UNKNOWN))).status, 404,
        'a run that never was cannot be cancelled');
});

scenario('interrupt_before', async (t) => {
    const threadId = await newThread(client);
    const stopped = await collect(client.runs.stream(threadId, 'agent', {
        input: say('use clock {}'), interruptBefore: ['tools'],
        streamMode: ['values', 'updates'] }));
    t.is(ofKind(stopped, 'values').at(-1).__interrupt__, [], 'the last values tell the breakpoint');
    t.is(ofKind(stopped, 'updates').at(-1), { __interrupt__: [] }, '... and the last update');
    const state = await client.threads.getState(threadId);
    t.is([state.next, state.tasks.map(({ name }) => name)], [['tools'], ['tools']],
        'the state says what comes next');
    t.is((await client.threads.get(threadId)).status, 'interrupted', 'the thread is interrupted');
    const resumed = await collect(client.runs.stream(threadId, 'agent', {
        input: null, streamMode: 'updates' }));
    t.is(ofKind(resumed, 'updates').map((update) => Object.keys(update)[0]), ['tools', 'agent'],
        'a run without input goes on');
    t.is((await client.threads.get(threadId)).status, 'idle', '... to the end');
    const run = await client.runs.create(threadId, 'agent', {
        input: say('use clock {}'), interruptAfter: '*' });
    await client.runs.join(threadId, run.run_id);
    t.is((await client.threads.getState(threadId)).next, ['tools'],
        'interruptAfter stops after a node');
    await collect(client.runs.stream(threadId, 'agent', { command: { resume: 'go on' } }));
    t.is((await client.threads.getState(threadId)).next, [], 'a command resumes too');
});

scenario('busy thread', async (t) => {
    const threadId = await newThread(client);
    const status = async ({ run_id: id }) => (await client.runs.get(threadId, id)).status;
    const start = (text, multitaskStrategy) => client.runs.create(threadId, 'agent', {
        input: say(text), multitaskStrategy });
    const first = await start('sleep 60000');
    const error = await t.errorOf(start('no', 'reject'));
    t.is(error && error.status, 409, 'reject is a conflict');
    t.ok(/already running/.test(error && JSON.parse(error.text).detail),
        '... that says why', error && error.text);
    t.is((await client.runs.list(threadId)).length, 1, '... and stores no run');
    await begun(client, threadId, first.run_id);
    const second = await start('sleep 60001', 'interrupt');
    await client.runs.join(threadId, first.run_id);
    t.is(await status(first), 'interrupted', 'interrupt stops the run before');
    const third = await start('sleep 60002', 'rollback');
    await until(() => t.errorOf(status(second)));
    t.is((await t.errorOf(status(second))).status, 404, 'rollback removes the run before');
    const fourth = await start('last', 'enqueue');
    t.is([await status(third), await status(fourth)], ['pending', 'pending'], 'enqueue waits');
    await begun(client, threadId, third.run_id);
    await client.runs.cancel(threadId, third.run_id);
    const { messages } = await client.runs.join(threadId, fourth.run_id);
    t.is(await status(fourth), 'success', '... until it is its turn');
    t.is(messages.filter(({ type }) => type === 'human').map(({ content }) => content),
        ['sleep 60000', 'sleep 60002', 'last'], 'the thread has what was not rolled back');
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
    t.ok(/^No assistant found for "nobody"/.test(JSON.parse(error.text).detail), '... and named',
        error.text);
    t.is(await statusOf(create(threadId, 'agent', { streamMode: 'nonsense' })), [422, 'string'],
        'an unknown stream mode is 422');
    const bad = await t.errorOf(create(threadId, 'agent', { multitaskStrategy: 'nonsense' }));
    t.ok(bad.status === 422 && bad.text.includes('/multitask_strategy'),
        'a 422 points at the place', bad.text);
    t.is(await statusOf(client.runs.join(threadId, UNKNOWN)), [404, 'string'],
        'a join of an unknown run is 404');
    t.is(await statusOf(collect(client.runs.joinStream(threadId, UNKNOWN))), [404, 'string'],
        'so is its stream');
    t.is(await statusOf(collect(client.runs.stream(threadId, 'nobody', {}))), [404, 'string'],
        'so is a stream of an unknown assistant');
    t.is(await client.runs.list(threadId), [], 'nothing of it was stored');
});

scenario('failing run', async (t) => {
    const threadId = await newThread(client);
    const events = await collect(client.runs.stream(threadId, 'agent', { input: say('fail') }));
    t.is(events.at(-1).event, 'error', 'its stream ends with an error');
    const { error, message } = events.at(-1).data;
    t.ok(error === 'DemoError' && /told it to/.test(message), '... that says what happened',
        events.at(-1));
    const [run] = await client.runs.list(threadId);
    t.is(run.status, 'error', 'the record says so');
    t.is(await client.runs.join(threadId, run.run_id), { __error__: { error, message } },
        'a join of it returns the error');
    t.is((await client.threads.get(threadId)).status, 'error', 'and so does the thread');
});
