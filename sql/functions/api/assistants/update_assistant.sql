-- SPDX-License-Identifier: Apache-2.0
-- PATCH /assistants/{assistant_id}: the members of p_request (the body) in a new version, which becomes the current
-- one, also if nothing changes. metadata is merged, other members are replaced. p_known_graph_ids: as
-- agent.create_assistant.
-- Returns: ok with the assistant record; assistant_not_found, graph_not_found, invalid_value; assistant_is_system
--          when a system assistant is to get another graph; limit_exceeded.
-- Locks:   the assistant, then its versions.
create or replace function agent.update_assistant(
    p_deployment_id uuid,
    p_assistant_id uuid,
    p_known_graph_ids text[],
    p_request json,
    out code text,
    out body text
)
language plpgsql volatile security invoker
set search_path = '' set jit = off set enable_seqscan = off set plan_cache_mode = force_generic_plan
as $function$
declare
    v_request   agent.assistant_request := json_populate_record(null::agent.assistant_request, p_request);
    v_assistant agent.assistants;
begin
    if exists (select from agent.account_limits) then
        body := agent.check_stored_bytes(p_deployment_id);
        if body is not null then
            code := 'limit_exceeded';
            return;
        end if;
    end if;
    select a.* into v_assistant
      from agent.assistants a
     where a.deployment_id = p_deployment_id
       and a.assistant_id = p_assistant_id
       for no key update;
    if not found then
        code := 'assistant_not_found';
        return;
    end if;
    if v_request.graph_id <> v_assistant.graph_id then
        if v_assistant.is_system then
            code := 'assistant_is_system';
            return;
        elsif v_request.graph_id <> all (p_known_graph_ids)
              and not agent.is_graph_served(p_deployment_id, v_request.graph_id) then
            code := 'graph_not_found';
            return;
        end if;
        v_assistant.graph_id := v_request.graph_id;
    end if;
    v_assistant.name := coalesce(nullif(v_request.name, ''), v_assistant.name);
    v_assistant.description := coalesce(v_request.description, v_assistant.description);
    v_assistant.config := coalesce(v_request.config, v_assistant.config);
    v_assistant.context := coalesce(v_request.context, v_assistant.context);
    v_assistant.metadata := v_assistant.metadata || coalesce(v_request.metadata, '{}');
    v_assistant.last_version := v_assistant.last_version + 1;
    v_assistant.version := v_assistant.last_version;
    v_assistant.updated_at := agent.now();
    body := agent.check_assistant(v_assistant);
    if body is not null then
        code := 'invalid_value';
        return;
    end if;
    perform agent.change_assistant(v_assistant);
    perform agent.add_assistant_version(v_assistant);
    code := 'ok';
    body := agent.render_assistant(v_assistant);
end
$function$;

comment on function agent.update_assistant(uuid, uuid, text[], json) is 'PATCH /assistants/{assistant_id}.';
