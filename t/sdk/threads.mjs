// SPDX-License-Identifier: Apache-2.0
// Threads and their state.
import { UNKNOWN, connect, newThread, say, scenario } from './tap.mjs';

const client = connect();

scenario('threads', async (t) => {
    const threadId = crypto.randomUUID();
    const thread = await client.threads.create({ threadId, metadata: { colour: 'red' } });
    t.is([thread.thread_id, thread.status, thread.metadata, thread.values],
        [threadId, 'idle', { colour: 'red' }, null], 'a new one is idle and empty');
    t.is(await client.threads.get(threadId), thread, 'it is there');
    t.is(await client.threads.create({ threadId, ifExists: 'do_nothing' }), thread,
        'made again with do_nothing it is the same');
    const error = await t.errorOf(client.threads.create({ threadId }));
    t.is(error && error.status, 409, 'made again it is a conflict');
    await client.threads.delete(threadId);
    t.is((await t.errorOf(client.threads.get(threadId))).status, 404, 'deleted it is gone');
    t.is((await t.errorOf(client.threads.delete(UNKNOWN))).status, 404,
        'one that never was cannot be deleted');
});

scenario('state', async (t) => {
    const threadId = await newThread(client);
    t.is((await client.threads.getState(threadId)).next, [], 'an empty thread has nothing to do');
    const run = await client.runs.create(threadId, 'agent', { input: say('use clock {}') });
    const values = await client.runs.join(threadId, run.run_id);
    const state = await client.threads.getState(threadId);
    t.is(state.values, values, 'the state after a run is what its join returns');
    t.is(values.messages.map(({ type }) => type), ['human', 'ai', 'tool', 'ai'],
        'it has the messages');
    t.is([state.next, state.tasks, state.metadata.run_id], [[], [], run.run_id],
        'nothing is left to do');
    t.is(state.checkpoint.checkpoint_id, state.checkpoint_id, 'a checkpoint is named');
    const before = await client.threads.getState(
        threadId, state.parent_checkpoint.checkpoint_id);
    t.is([before.next, before.values.messages.length], [['agent'], 3],
        'the state at the checkpoint before can be read');
    t.is((await client.threads.get(threadId)).values, values, 'the thread has the values too');
    const unknown = await t.errorOf(client.threads.getState(UNKNOWN));
    t.is(unknown.status, 404, 'no thread, no state');
});
