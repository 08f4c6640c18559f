-- SPDX-License-Identifier: Apache-2.0
-- Creates the system assistant of a graph, unless it exists: when a runner first reports the graph, or for the
-- first run of a graph that this server executes and that no runner has reported yet.
-- Returns: the assistant.
-- Locks:   the new row.
create or replace function agent.create_system_assistant(
    p_deployment_id uuid,
    p_assistant_id uuid,
    p_graph_id text,
    p_description text
) returns agent.assistants
language plpgsql volatile security invoker
set search_path = ''
as $function$
declare
    v_now       timestamptz := agent.now();
    v_assistant agent.assistants;
begin
    insert into agent.assistants (
        deployment_id, assistant_id, graph_id, name, description, metadata, created_at, updated_at)
    values (
        p_deployment_id, p_assistant_id, p_graph_id, p_graph_id, p_description,
        '{"created_by": "system"}', v_now, v_now)
        on conflict (deployment_id, assistant_id) do nothing;
    select a.* into strict v_assistant
      from agent.assistants a
     where a.deployment_id = p_deployment_id
       and a.assistant_id = p_assistant_id;
    return v_assistant;
end
$function$;

comment on function agent.create_system_assistant(uuid, uuid, text, text) is
    'Creates the system assistant of a graph.';
