-- SPDX-License-Identifier: Apache-2.0
-- POST /assistants/{assistant_id}/latest: the assistant becomes what it was in a version. The next update still
-- makes a version with a new number.
-- Returns: ok with the assistant record; assistant_not_found, version_not_found.
-- Locks:   the assistant.
create or replace function agent.set_assistant_version(
    p_deployment_id uuid,
    p_assistant_id uuid,
    p_version integer,
    out code text,
    out body text
)
language plpgsql volatile security invoker
set search_path = '' set jit = off set enable_seqscan = off set plan_cache_mode = force_generic_plan
as $function$
declare
    v_assistant agent.assistants;
    v_version   agent.assistant_versions;
begin
    select a.* into v_assistant
      from agent.assistants a
     where a.deployment_id = p_deployment_id
       and a.assistant_id = p_assistant_id
       for no key update;
    if not found then
        code := 'assistant_not_found';
        return;
    end if;
    select v.* into v_version
      from agent.assistant_versions v
     where v.deployment_id = p_deployment_id
       and v.assistant_id = p_assistant_id
       and v.version = p_version;
    -- A system assistant may have versions of the time before it became one.
    if not found or v_assistant.is_system and v_version.graph_id <> v_assistant.graph_id then
        code := 'version_not_found';
        return;
    end if;
    v_assistant.version := v_version.version;
    v_assistant.graph_id := v_version.graph_id;
    v_assistant.name := v_version.name;
    v_assistant.description := v_version.description;
    v_assistant.config := v_version.config;
    v_assistant.context := v_version.context;
    v_assistant.metadata := v_version.metadata;
    v_assistant.updated_at := agent.now();
    perform agent.change_assistant(v_assistant);
    code := 'ok';
    body := agent.render_assistant(v_assistant);
end
$function$;

comment on function agent.set_assistant_version(uuid, uuid, integer) is
    'POST /assistants/{assistant_id}/latest.';
