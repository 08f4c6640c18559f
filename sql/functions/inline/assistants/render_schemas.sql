-- SPDX-License-Identifier: Apache-2.0
-- The schemas of a graph as the API shows them. p_schemas: as a runner reported them; null for none.
-- Returns: an object with the graph's name and its schemas, null for each that was not reported.
-- Locks:   none.
create or replace function agent.render_schemas(p_graph_id text, p_schemas json) returns json
language sql stable parallel safe
-- No SET clause: it would keep the body from being inlined.
as $function$
    select json_build_object(
        'graph_id', p_graph_id,
        'input_schema', p_schemas -> 'input_schema',
        'output_schema', p_schemas -> 'output_schema',
        'state_schema', p_schemas -> 'state_schema',
        'config_schema', p_schemas -> 'config_schema',
        'context_schema', p_schemas -> 'context_schema')
$function$;

comment on function agent.render_schemas(text, json) is 'The schemas of a graph as the API shows them.';
