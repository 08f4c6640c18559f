-- SPDX-License-Identifier: Apache-2.0
-- The assistant of a new run. p_graph_id: the configured graph whose system assistant was requested; null
-- for a stored assistant, whose graph must be one of p_graph_ids.
-- Returns: the assistant; a row of nulls when there is none.
-- Locks:   the new row, when a run first names the graph.
create or replace function agent.find_assistant(
    p_account_id uuid,
    p_assistant_id uuid,
    p_graph_id text,
    p_graph_ids text[]
) returns agent.assistants
language plpgsql volatile security invoker
set search_path = '' set jit = off set enable_seqscan = off set plan_cache_mode = force_generic_plan
as $function$
declare
    v_assistant agent.assistants;
begin
    select a.* into v_assistant
      from agent.assistants a
     where a.account_id = p_account_id
       and a.assistant_id = p_assistant_id;
    if not found and p_graph_id is not null then
        return agent.create_system_assistant(p_account_id, p_assistant_id, p_graph_id);
    elsif p_graph_id is null and v_assistant.graph_id <> all (p_graph_ids) then
        return null;
    end if;
    return v_assistant;
end
$function$;

comment on function agent.find_assistant(uuid, uuid, text, text[]) is
    'The assistant of a new run.';
