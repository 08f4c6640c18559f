// SPDX-License-Identifier: Apache-2.0
// Runs that are created and waited for in one call.
import { begun, connect, newThread, say, scenario, until } from './tap.mjs';

const client = connect();

scenario('wait', async (t) => {
    const threadId = await newThread(client);
    const created = [];
    const values = await client.runs.wait(threadId, 'agent', {
        input: say('use clock {}'), onRunCreated: (ids) => created.push(ids) });
    t.is(values.messages.map(({ type }) => type), ['human', 'ai', 'tool', 'ai'],
        'wait returns the values');
    const [run] = await client.runs.list(threadId);
    t.is(run.status, 'success', 'the run has succeeded when wait returns');
    t.is(created, [{ run_id: run.run_id, thread_id: threadId }], 'onRunCreated receives the ids');
    const stopped = await client.runs.wait(threadId, 'agent', {
        input: say('use clock {}'), interruptBefore: ['tools'] });
    t.is(['__interrupt__' in stopped, stopped.messages.length], [false, 6],
        'at a breakpoint, the values have no __interrupt__');
    const resumed = await client.runs.wait(threadId, 'agent', { input: null });
    t.is([resumed.__interrupt__, resumed.messages.length], [undefined, 8],
        'without input, wait resumes');
});

scenario('wait for a failing run', async (t) => {
    const threadId = await newThread(client);
    const payload = { input: say('fail') };
    const error = await t.errorOf(client.runs.wait(threadId, 'agent', payload));
    t.ok(/^DemoError: .*told it to/.test(error && error.message), 'wait throws the error of the run', error);
    const values = await client.runs.wait(threadId, 'agent', { ...payload, raiseError: false });
    t.is(values.__error__.error, 'DemoError', 'wait can return the error instead');
    t.is((await t.errorOf(client.runs.wait(threadId, 'nobody', payload))).status, 404,
        'an unknown assistant is 404');
});

scenario('wait on a busy thread', async (t) => {
    const threadId = await newThread(client);
    const first = client.runs.wait(threadId, 'agent', { input: say('sleep 60000') });
    const [run] = await until(async () => {
        const runs = await client.runs.list(threadId);
        return runs.length && runs;
    });
    await begun(client, threadId, run.run_id);
    const refused = await t.errorOf(client.runs.wait(threadId, 'agent', { input: say('no') }));
    t.is(refused && refused.status, 409, 'with reject, a second wait is refused');
    const second = await client.runs.wait(threadId, 'agent', {
        input: say('Hello'), multitaskStrategy: 'interrupt' });
    t.is(second.messages.at(-1).type, 'ai', 'with interrupt, a second wait returns its values');
    t.is((await first).messages[0].content, 'sleep 60000',
        'with interrupt, the first wait returns its values');
});

scenario('wait of a client that leaves', async (t) => {
    const threadId = await newThread(client);
    const abort = new AbortController();
    const waiting = client.runs.wait(threadId, 'agent', {
        input: say('sleep 60000'), onDisconnect: 'cancel', signal: abort.signal });
    const [run] = await until(async () => {
        const runs = await client.runs.list(threadId);
        return runs.length && runs;
    });
    abort.abort();
    t.ok(await t.errorOf(waiting), 'an aborted wait returns no values');
    await client.runs.join(threadId, run.run_id);
    const ended = await client.runs.get(threadId, run.run_id);
    t.is([ended.status, ended.cancel_reason], ['interrupted', 'disconnect: the client disconnected'],
        'with onDisconnect cancel, the run is cancelled');
});

scenario('wait on a thread that does not exist', async (t) => {
    const threadId = crypto.randomUUID();
    const payload = { input: say('Hello') };
    t.is((await t.errorOf(client.runs.wait(threadId, 'agent', payload))).status, 404,
        'the run is refused by default');
    const values = await client.runs.wait(threadId, 'agent', { ...payload, ifNotExists: 'create' });
    t.is((await client.threads.get(threadId)).values, values,
        'with ifNotExists create, the thread is created');
});

scenario('delayed run', async (t) => {
    const threadId = await newThread(client);
    const run = await client.runs.create(threadId, 'agent', {
        input: say('Hello'), afterSeconds: 2, config: { tags: ['later'] } });
    await client.runs.join(threadId, run.run_id);
    const state = await client.threads.getState(threadId);
    const waited = Date.parse(state.created_at) - Date.parse(run.created_at);
    t.ok(waited >= 2000, 'the run begins after afterSeconds', waited);
    t.is((await client.runs.get(threadId, run.run_id)).status, 'success', 'the run succeeds');
});
