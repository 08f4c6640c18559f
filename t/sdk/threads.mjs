// SPDX-License-Identifier: Apache-2.0
// Threads and their state.
import { UNKNOWN, connect, newThread, say, scenario } from './tap.mjs';

const client = connect();

scenario('threads', async (t) => {
    const threadId = crypto.randomUUID();
    const thread = await client.threads.create({ threadId, metadata: { colour: 'red' } });
    t.is([thread.thread_id, thread.status, thread.metadata, thread.values],
        [threadId, 'idle', { colour: 'red' }, null], 'a new thread is idle and has no values');
    t.is(await client.threads.get(threadId), thread, 'get returns the record of create');
    t.is(await client.threads.create({ threadId, ifExists: 'do_nothing' }), thread,
        'with do_nothing, create returns the existing thread');
    t.is((await client.threads.update(threadId, { metadata: { size: 1 } })).metadata, { colour: 'red', size: 1 },
        'update merges metadata');
    t.is(await client.threads.update(threadId, { metadata: { size: 2 }, returnMinimal: true }), undefined,
        'update may return nothing');
    const error = await t.errorOf(client.threads.create({ threadId }));
    t.is(error && error.status, 409, 'an existing id is a conflict');
    const run = await client.runs.create(threadId, 'agent', { input: say('Hello') });
    const values = await client.runs.join(threadId, run.run_id);
    const copy = await client.threads.copy(threadId);
    const { metadata } = await client.threads.get(threadId);
    t.is([copy.metadata, copy.values], [{ ...metadata, thread_id: copy.thread_id }, values],
        'copy returns the record of the copy, with its values');
    t.is((await client.threads.getState(copy.thread_id)).checkpoint_id,
        (await client.threads.getState(threadId)).checkpoint_id,
        'the checkpoints of a copy have the same ids');
    t.is((await t.errorOf(client.threads.copy(UNKNOWN))).status, 409,
        'the copy of an unknown thread is a conflict');
    await client.threads.delete(threadId);
    t.is((await t.errorOf(client.threads.get(threadId))).status, 404, 'a deleted thread is 404');
    t.is((await t.errorOf(client.threads.delete(UNKNOWN))).status, 404,
        'an unknown thread cannot be deleted');
});

scenario('thread searches', async (t) => {
    const search = (query) => client.threads.search(query);
    const count = (query) => client.threads.count(query);
    const metadata = { topic: 'search-js' };
    const ids = [];
    for (const number of [1, 2, 3]) {
        ids.push((await client.threads.create({ metadata: { ...metadata, number } })).thread_id);
    }
    const found = await search({ metadata });
    t.is(found.map(({ thread_id }) => thread_id), [...ids].reverse(), 'search returns threads with these metadata, the last changed first');
    t.is(found[0], await client.threads.get(ids[2]), 'search returns the records of threads');
    t.is(await search({ ids: [ids[2], UNKNOWN, ids[0], ids[1]], metadata, sortBy: 'created_at', sortOrder: 'asc', limit: 1, offset: 1,
        select: ['thread_id', 'metadata'] }), [{ thread_id: ids[1], metadata: { ...metadata, number: 2 } }],
    'search has ids, an order, pages and a selection of members');
    const run = await client.runs.create(ids[0], 'agent', { input: say('Hello') });
    const values = await client.runs.join(ids[0], run.run_id);
    const busy = await client.runs.create(ids[1], 'agent', { input: say('sleep 600000') });
    t.is(await search({ metadata, status: 'busy', select: ['thread_id'] }), [{ thread_id: ids[1] }], 'search has a status');
    t.is((await search({ ids: [ids[0]] }))[0].values, values, 'a found thread has its values');
    t.is([await count({ metadata }), await count({ metadata, status: 'busy' }), await count({ metadata: { topic: 'none' } })], [3, 1, 0],
        'count has the conditions of search');
    await client.runs.cancel(ids[1], busy.run_id, true);
    const refused = [search({ values: { a: 1 } }), search({ extract: { a: 'values.a' } }), count({ values: { a: 1 } }),
        search({ limit: 1001 }), search({ status: 'none' })];
    // Each is waited for at once: Node ends for a rejection that nobody waits for.
    for (const error of await Promise.all(refused.map((promise) => t.errorOf(promise)))) {
        t.is(error?.status, 422, 'a condition that is not supported is refused');
    }
});

scenario('pruned threads', async (t) => {
    const [kept, gone] = [await newThread(client), await newThread(client)];
    t.is(await client.threads.prune([gone, UNKNOWN]), { pruned_count: 1 }, 'prune deletes threads');
    t.is((await t.errorOf(client.threads.get(gone))).status, 404, 'a pruned thread is 404');
    for (const text of ['Hello', 'Again']) {
        const run = await client.runs.create(kept, 'agent', { input: say(text) });
        await client.runs.join(kept, run.run_id);
    }
    const state = await client.threads.getState(kept);
    t.is(await client.threads.prune([kept], { strategy: 'keep_latest' }), { pruned_count: 1 }, 'prune keep_latest counts threads');
    t.is((await client.threads.getHistory(kept)).map(({ checkpoint_id }) => checkpoint_id), [state.checkpoint_id],
        'prune keep_latest leaves the last checkpoint');
    t.is((await client.threads.getState(kept)).values, state.values, 'prune keep_latest leaves the values');
});

// No method of the SDK has it.
scenario('storage of a thread', async (t) => {
    const threadId = await newThread(client);
    const run = await client.runs.create(threadId, 'agent', { input: say('Hello') });
    await client.runs.join(threadId, run.run_id);
    const storage = await client.threads.fetch(`/threads/${threadId}/storage`);
    t.is([storage.thread_id, storage.checkpoints.count, Object.keys(storage).sort()], [threadId, 3,
        ['channel_values', 'checkpoints', 'pending_writes', 'thread_id', 'total_bytes']], 'storage has its members');
    t.ok(storage.channel_values.by_channel.messages.bytes > 0, 'storage has the bytes of each channel', storage);
    t.is((await t.errorOf(client.threads.fetch(`/threads/${UNKNOWN}/storage`))).status, 404, 'an unknown thread has no storage');
});

scenario('state', async (t) => {
    const threadId = await newThread(client);
    t.is((await client.threads.getState(threadId)).next, [], 'next of a new thread is empty');
    const run = await client.runs.create(threadId, 'agent', { input: say('use clock {}') });
    const values = await client.runs.join(threadId, run.run_id);
    const state = await client.threads.getState(threadId);
    t.is(state.values, values, 'the values after a run are the result of join');
    t.is(values.messages.map(({ type }) => type), ['human', 'ai', 'tool', 'ai'],
        'the values have the messages of the run');
    t.is([state.next, state.tasks, state.metadata.run_id], [[], [], run.run_id],
        'next and tasks are empty after a run');
    t.is(state.checkpoint.checkpoint_id, state.checkpoint_id, 'checkpoint names the checkpoint');
    const before = await client.threads.getState(
        threadId, state.parent_checkpoint.checkpoint_id);
    t.is([before.next, before.values.messages.length], [['agent'], 3],
        'the state at an earlier checkpoint can be read');
    t.is((await client.threads.get(threadId)).values, values,
        'the record of the thread has the values');
    const unknown = await t.errorOf(client.threads.getState(UNKNOWN));
    t.is(unknown.status, 404, 'the state of an unknown thread is not found');
});

scenario('history', async (t) => {
    const threadId = await newThread(client);
    t.is(await client.threads.getHistory(threadId), [], 'the history of a new thread is empty');
    const run = await client.runs.create(threadId, 'agent', { input: say('Hello') });
    await client.runs.join(threadId, run.run_id);
    const states = await client.threads.getHistory(threadId);
    t.is(states.map(({ metadata }) => metadata.step), [1, 0, -1], 'the history has a state for each step, newest first');
    t.is(states[0], await client.threads.getState(threadId), 'the first state is that of the thread');
    t.is(await client.threads.getHistory(threadId, { limit: 1, before: states[1].checkpoint }), [states[2]],
        'limit and before select states');
    t.is(await client.threads.getHistory(threadId, { before: { configurable: states[0].checkpoint }, metadata: { step: 0 } }),
        [states[1]], 'metadata select states');
    t.is(await client.threads.getHistory(threadId, { checkpoint: states[1].checkpoint }), [states[1]],
        'checkpoint selects a state');
    t.is(await client.threads.getHistory(threadId, { limit: 1, select: ['next'] }), [{ next: [] }], 'select selects members');
    t.is(await client.threads.getState(threadId, states[1].checkpoint), states[1], 'the state at a checkpoint can be read');
});

scenario('supersteps', async (t) => {
    const source = await newThread(client);
    const run = await client.runs.create(source, 'agent', { input: say('Hello') });
    await client.runs.join(source, run.run_id);
    const states = (await client.threads.getHistory(source)).reverse();
    const { __start__: input } = states[0].metadata.writes;
    const thread = await client.threads.create({ graphId: 'agent', supersteps: [
        { updates: [{ values: input, asNode: '__input__' }] },
        { updates: [{ values: input, asNode: '__start__' }] },
        { updates: Object.entries(states[2].metadata.writes).map(([asNode, values]) => ({ values, asNode })) }] });
    t.is(thread.values.messages.map(({ content }) => content), states[2].values.messages.map(({ content }) => content),
        'a history is replayed on a new thread');
    t.is((await client.threads.getHistory(thread.thread_id)).length, 3, 'each superstep makes a state');
});

scenario('update state', async (t) => {
    const threadId = await newThread(client);
    const bare = await t.errorOf(client.threads.updateState(threadId, { values: { messages: [] } }));
    t.is(bare.status, 400, 'a thread without a graph cannot be updated');
    const run = await client.runs.create(threadId, 'agent', { input: say('Hello') });
    await client.runs.join(threadId, run.run_id);
    const old = await client.threads.getState(threadId);
    const made = await client.threads.updateState(threadId, { values: say('More'), asNode: '__start__' });
    const state = await client.threads.getState(threadId);
    t.is(made.checkpoint, state.checkpoint, 'updateState returns the new checkpoint');
    t.is(made.configurable.checkpoint_id, state.checkpoint_id, 'also as configurable');
    t.is([state.values.messages.at(-1).content, state.next, state.metadata.source],
        ['More', ['agent'], 'update'], 'the message is appended, the agent is next');
    const values = await client.runs.wait(threadId, 'agent');
    t.is(values.messages.map(({ type }) => type), ['human', 'ai', 'human', 'ai'],
        'a run without input continues there');
    await client.threads.updateState(threadId, { values: null, asNode: 'agent', checkpoint: old.checkpoint });
    t.is((await client.threads.getState(threadId)).values, old.values,
        'an update may continue an earlier checkpoint');
    const wrong = await t.errorOf(client.threads.updateState(threadId, { values: say('x'), asNode: 'nowhere' }));
    t.is(wrong.status, 422, 'an unknown node is refused');
    const unknown = await t.errorOf(client.threads.updateState(UNKNOWN, { values: {} }));
    t.is(unknown.status, 404, 'an unknown thread cannot be updated');
    const busy = await client.runs.create(threadId, 'agent', { input: say('sleep 600000') });
    const refused = await t.errorOf(client.threads.updateState(threadId, { values: say('x') }));
    t.is(refused.status, 409, 'a busy thread cannot be updated');
    await client.runs.cancel(threadId, busy.run_id, true);
});
