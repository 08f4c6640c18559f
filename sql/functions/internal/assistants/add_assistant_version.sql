-- SPDX-License-Identifier: Apache-2.0
-- Stores an assistant as its last version, and deletes the version that is then older than the newest 1,000.
-- Returns: nothing.
-- Locks:   the caller holds the assistant; takes both versions.
create or replace function agent.add_assistant_version(p_assistant agent.assistants) returns void
language plpgsql volatile security invoker
set search_path = '' set jit = off set enable_seqscan = off set plan_cache_mode = force_generic_plan
as $function$
begin
    insert into agent.assistant_versions (
        deployment_id, assistant_id, version, graph_id, name, description, config, context, metadata, created_at)
    values (
        p_assistant.deployment_id, p_assistant.assistant_id, p_assistant.last_version, p_assistant.graph_id,
        p_assistant.name, p_assistant.description, p_assistant.config, p_assistant.context, p_assistant.metadata,
        p_assistant.updated_at);
    delete from agent.assistant_versions v
     where v.deployment_id = p_assistant.deployment_id
       and v.assistant_id = p_assistant.assistant_id
       and v.version = p_assistant.last_version - 1000;
end
$function$;

comment on function agent.add_assistant_version(agent.assistants) is 'Stores an assistant as its last version.';
