-- SPDX-License-Identifier: Apache-2.0
-- Creates the system assistant of a graph, unless it exists: when a supervisor that executes the graph starts, when a
-- runner reports the graph, or for the first run of a graph of this server. An assistant that a
-- client has created with that id becomes the system assistant, as a new version: the name of the graph must
-- stand for it.
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
    insert into agent.assistants as a (
        deployment_id, assistant_id, graph_id, name, description, metadata, is_system, created_at, updated_at)
    values (
        p_deployment_id, p_assistant_id, p_graph_id, p_graph_id, p_description,
        '{"created_by": "system"}', true, v_now, v_now)
        on conflict (deployment_id, assistant_id) do update
       set graph_id = excluded.graph_id,
           name = excluded.name,
           description = excluded.description,
           config = excluded.config,
           context = excluded.context,
           metadata = excluded.metadata,
           is_system = true,
           version = a.last_version + 1,
           last_version = a.last_version + 1,
           updated_at = excluded.updated_at
     where not a.is_system
    returning a.* into v_assistant;
    if found then
        perform agent.add_assistant_version(v_assistant);
    else
        select a.* into strict v_assistant
          from agent.assistants a
         where a.deployment_id = p_deployment_id
           and a.assistant_id = p_assistant_id;
    end if;
    return v_assistant;
end
$function$;

comment on function agent.create_system_assistant(uuid, uuid, text, text) is
    'Creates the system assistant of a graph.';
