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
        'returns the values');
    const [run] = await client.runs.list(threadId);
    t.is(run.status, 'success', '... when the record says success');
    t.is(created, [{ run_id: run.run_id, thread_id: threadId }], 'onRunCreated gets the ids');
    const stopped = await client.runs.wait(threadId, 'agent', {
        input: say('use clock {}'), interruptBefore: ['tools'] });
    t.is([stopped.__interrupt__, stopped.messages.length], [[], 6],
        'at a breakpoint they tell it, beside the state');
    const resumed = await client.runs.wait(threadId, 'agent', { input: null });
    t.is([resumed.__interrupt__, resumed.messages.length], [undefined, 8], '... and go on from it');
});

scenario('wait for a failing run', async (t) => {
    const threadId = await newThread(client);
    const payload = { input: say('fail') };
    const error = await t.errorOf(client.runs.wait(threadId, 'agent', payload));
    t.ok(/^DemoError: .*told it to/.test(error && error.message), 'throws its error', error);
    const values = await client.runs.wait(threadId, 'agent', { ...payload, raiseError: false });
    t.is(values.__error__.error, 'DemoError', '... or returns it');
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
    t.is(refused && refused.status, 409, 'is refused with reject');
    const second = await client.runs.wait(threadId, 'agent', {
        input: say('Hello'), multitaskStrategy: 'interrupt' });
    t.is(second.messages.at(-1).type, 'ai', 'comes to its turn with interrupt');
    t.is((await first).messages[0].content, 'sleep 60000', '... and the first wait returns');
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
    t.ok(await t.errorOf(waiting), 'it gets nothing');
    await client.runs.join(threadId, run.run_id);
    t.is((await client.runs.get(threadId, run.run_id)).status, 'interrupted',
        'with onDisconnect cancel the run is cancelled');
});

scenario('a thread that is not there yet', async (t) => {
    const threadId = crypto.randomUUID();
    const payload = { input: say('Hello') };
    t.is((await t.errorOf(client.runs.wait(threadId, 'agent', payload))).status, 404,
        'is refused');
    const values = await client.runs.wait(threadId, 'agent', { ...payload, ifNotExists: 'create' });
    t.is((await client.threads.get(threadId)).values, values, '... or made, with ifNotExists');
});

scenario('a run that is to begin later', async (t) => {
    const threadId = await newThread(client);
    const run = await client.runs.create(threadId, 'agent', {
        input: say('Hello'), afterSeconds: 2, config: { tags: ['later'] } });
    await client.runs.join(threadId, run.run_id);
    const state = await client.threads.getState(threadId);
    const waited = Date.parse(state.created_at) - Date.parse(run.created_at);
    t.ok(waited >= 2000, 'begins after afterSeconds', waited);
    t.is((await client.runs.get(threadId, run.run_id)).status, 'success', '... and ends well');
});
