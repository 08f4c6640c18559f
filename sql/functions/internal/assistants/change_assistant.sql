-- SPDX-License-Identifier: Apache-2.0
-- Writes an assistant that exists, without what never changes.
-- Returns: nothing.
-- Locks:   the caller holds the assistant.
create or replace function agent.change_assistant(p_assistant agent.assistants) returns void
language plpgsql volatile security invoker
set search_path = '' set jit = off set enable_seqscan = off set plan_cache_mode = force_generic_plan
as $function$
begin
    update agent.assistants a
       set graph_id = p_assistant.graph_id,
           name = p_assistant.name,
           description = p_assistant.description,
           config = p_assistant.config,
           context = p_assistant.context,
           metadata = p_assistant.metadata,
           version = p_assistant.version,
           last_version = p_assistant.last_version,
           updated_at = p_assistant.updated_at
     where a.deployment_id = p_assistant.deployment_id
       and a.assistant_id = p_assistant.assistant_id;
end
$function$;

comment on function agent.change_assistant(agent.assistants) is 'Writes an assistant that exists.';
