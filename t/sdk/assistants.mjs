// SPDX-License-Identifier: Apache-2.0
// Assistants, and the schemas and drawings of their graphs.
import { UNKNOWN, connect, scenario } from './tap.mjs';

const AGENT = 'fe096781-5601-53d2-b2f6-0d3403f7e9ca';
const client = connect();

scenario('assistants', async (t) => {
    // The first one follows the start of a runner.
    let found = [];
    while (found.length === 0) {
        found = await client.assistants.search({ graphId: 'agent', metadata: { created_by: 'system' } });
    }
    t.is(found.map(({ assistant_id, name, version }) => [assistant_id, name, version]), [[AGENT, 'agent', 1]],
        'search returns the system assistant of a graph');
    t.is(await client.assistants.get(AGENT), found[0], 'get returns the record of search');
    t.is((await client.assistants.search({ limit: 1, includePagination: true })).assistants.length, 1,
        'search returns pages');
    const graph = await client.assistants.getGraph(AGENT, { xray: true });
    t.is(graph.nodes.map(({ id }) => id), ['__start__', 'agent', 'tools', '__end__'], 'getGraph returns the drawing');
    const schemas = await client.assistants.getSchemas('agent');
    t.is([schemas.graph_id, schemas.input_schema.type], ['agent', 'object'], 'getSchemas returns the schemas');
    t.is(await client.assistants.getSubgraphs(AGENT, { recurse: true }), {}, 'getSubgraphs returns none');
    t.is((await t.errorOf(client.assistants.get(UNKNOWN))).status, 404, 'an unknown assistant is 404');
});

scenario('assistants of clients', async (t) => {
    const made = await client.assistants.create({ graphId: 'agent', name: 'js', config: { tags: ['one'] }, context: { c: 1 },
        metadata: { sdk: 'js' }, description: 'd' });
    t.is([made.graph_id, made.name, made.version, made.config, made.context, made.metadata, made.description],
        ['agent', 'js', 1, { tags: ['one'] }, { c: 1 }, { sdk: 'js' }, 'd'], 'create returns the record');
    const id = made.assistant_id;
    t.is(await client.assistants.create({ graphId: 'agent', assistantId: id, ifExists: 'do_nothing' }), made,
        'create with ifExists do_nothing returns the existing one');
    t.is((await t.errorOf(client.assistants.create({ graphId: 'agent', assistantId: id }))).status, 409, 'an id that is taken is 409');
    const updated = await client.assistants.update(id, { metadata: { more: 1 }, config: { tags: ['two'] } });
    t.is([updated.version, updated.name, updated.metadata, updated.config], [2, 'js', { sdk: 'js', more: 1 }, { tags: ['two'] }],
        'update makes a version');
    t.is((await client.assistants.getVersions(id)).map(({ version }) => version), [2, 1], 'getVersions lists them');
    t.is((await client.assistants.setLatest(id, 1)).config, { tags: ['one'] }, 'setLatest makes one the current one');
    t.is(await client.assistants.count({ metadata: { sdk: 'js' } }), 1, 'count returns a number');
    const { thread_id } = await client.threads.create();
    const run = await client.runs.create(thread_id, id, { input: { messages: [{ role: 'user', content: 'Hello' }] } });
    t.is([run.kwargs.config.tags, run.kwargs.context, run.kwargs.config.metadata.sdk], [['one'], { c: 1 }, 'js'],
        'a run takes the config, the context and the metadata of its assistant');
    t.is((await client.runs.join(thread_id, run.run_id)).messages[0].content, 'Hello', 'and is executed');
    await client.assistants.delete(id, { deleteThreads: true });
    t.is((await t.errorOf(client.assistants.get(id))).status, 404, 'delete deletes the assistant');
    t.is((await t.errorOf(client.threads.get(thread_id))).status, 404, 'delete with deleteThreads deletes its threads');
    t.is((await t.errorOf(client.assistants.delete(AGENT))).status, 409, 'a system assistant is not deleted');
});
