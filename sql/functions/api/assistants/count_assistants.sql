-- SPDX-License-Identifier: Apache-2.0
-- POST /assistants/count. p_known_graph_ids and p_request (the body, with graph_id, name and metadata): as
-- agent.search_assistants.
-- Returns: ok with the number.
-- Locks:   none.
create or replace function agent.count_assistants(
    p_deployment_id uuid,
    p_known_graph_ids text[],
    p_request json,
    out code text,
    out body text
)
language plpgsql stable security invoker
set search_path = '' set jit = off
as $function$
declare
    -- Read once: the condition is evaluated for each assistant.
    v_graph_id text := p_request ->> 'graph_id';
    v_name     text := lower(p_request ->> 'name');
    v_metadata jsonb := nullif((p_request -> 'metadata')::jsonb, 'null');
    v_served   text[] := agent.list_served_graphs(p_deployment_id, p_known_graph_ids);
begin
    select 'ok', count(*)
      into code, body
      from agent.assistants a
     where a.deployment_id = p_deployment_id
       and agent.matches_assistant(a, v_graph_id, v_name, v_metadata, v_served);
end
$function$;

comment on function agent.count_assistants(uuid, text[], json) is 'POST /assistants/count.';
