-- SPDX-License-Identifier: Apache-2.0
-- Creates the assistant of a configured graph when a run first names the graph.
-- Returns: the assistant.
-- Locks:   the new row.
create or replace function agent.create_system_assistant(
    p_account_id uuid,
    p_assistant_id uuid,
    p_graph_id text
) returns agent.assistants
language plpgsql volatile security invoker
set search_path = ''
as $function$
declare
    v_now       timestamptz := agent.now();
    v_assistant agent.assistants;
begin
    insert into agent.assistants (
        account_id, assistant_id, graph_id, name, metadata, created_at, updated_at)
    values (
        p_account_id, p_assistant_id, p_graph_id, p_graph_id, '{"created_by": "system"}', v_now, v_now)
        on conflict (account_id, assistant_id) do nothing;
    select a.* into strict v_assistant
      from agent.assistants a
     where a.account_id = p_account_id
       and a.assistant_id = p_assistant_id;
    return v_assistant;
end
$function$;

comment on function agent.create_system_assistant(uuid, uuid, text) is
    'Creates the assistant of a configured graph.';
