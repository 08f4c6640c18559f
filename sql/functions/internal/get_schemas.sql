-- SPDX-License-Identifier: Apache-2.0
-- The schemas of an assistant's graph, as a runner reported them.
-- Returns: ok with the graph's name and its schemas, null for each that was not reported; assistant_not_found.
-- Locks:   none.
create or replace function agent.get_schemas(
    p_deployment_id uuid,
    p_assistant_id uuid,
    out code text,
    out body text
)
language plpgsql stable security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_hashjoin = off
set enable_mergejoin = off set plan_cache_mode = force_generic_plan
as $function$
begin
    select 'ok', json_build_object(
               'graph_id', a.graph_id,
               'input_schema', g.schemas -> 'input_schema',
               'output_schema', g.schemas -> 'output_schema',
               'state_schema', g.schemas -> 'state_schema',
               'config_schema', g.schemas -> 'config_schema',
               'context_schema', g.schemas -> 'context_schema')
      into code, body
      from agent.assistants a
      left join agent.graphs g
        on g.deployment_id = a.deployment_id
       and g.graph_id = a.graph_id
     where a.deployment_id = p_deployment_id
       and a.assistant_id = p_assistant_id;
    if not found then
        code := 'assistant_not_found';
    end if;
end
$function$;

comment on function agent.get_schemas(uuid, uuid) is 'The reported schemas of an assistant''s graph.';
