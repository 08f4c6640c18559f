-- SPDX-License-Identifier: Apache-2.0
-- The drawing of an assistant's graph, as a runner reported it.
-- Returns: ok with an object of nodes and edges, both empty when none were reported; assistant_not_found.
-- Locks:   none.
create or replace function agent.get_drawing(
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
    select 'ok', coalesce(g.drawing, '{"nodes":[],"edges":[]}')
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

comment on function agent.get_drawing(uuid, uuid) is 'The reported drawing of an assistant''s graph.';
