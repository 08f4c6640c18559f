-- SPDX-License-Identifier: Apache-2.0
-- The assistant of a new run. p_graph_id: the graph whose system assistant was requested; null when an
-- assistant was requested by its id. p_known_graph_ids: the graphs that the server of the request executes.
-- Returns: the assistant; a row of nulls when there is none, or when no server executes its graph (the caller asks
--          agent.refuse_assistant which).
-- Locks:   the new row, when the server executes a graph that no runner has reported yet.
create or replace function agent.find_assistant(
    p_deployment_id uuid,
    p_assistant_id uuid,
    p_graph_id text,
    p_known_graph_ids text[]
) returns agent.assistants
language plpgsql volatile security invoker
-- No SET clause: it is called for each run, by functions that have them.
as $function$
declare
    v_assistant agent.assistants;
begin
    select a.* into v_assistant
      from agent.assistants a
     where a.deployment_id = p_deployment_id
       and a.assistant_id = p_assistant_id;
    -- A client may have created one with the id of a graph's system assistant.
    if found and (v_assistant.is_system or coalesce(p_graph_id <> all (p_known_graph_ids), true)) then
        if v_assistant.graph_id <> all (p_known_graph_ids)
           and not agent.is_graph_served(p_deployment_id, v_assistant.graph_id) then
            return null;
        end if;
        return v_assistant;
    end if;
    if p_graph_id = any (p_known_graph_ids) then
        return agent.create_system_assistant(p_deployment_id, p_assistant_id, p_graph_id, null);
    end if;
    return null;
end
$function$;

comment on function agent.find_assistant(uuid, uuid, text, text[]) is
    'The assistant of a new run.';
