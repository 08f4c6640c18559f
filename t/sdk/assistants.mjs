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
