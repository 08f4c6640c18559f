-- SPDX-License-Identifier: Apache-2.0
-- POST /assistants: an assistant of a graph, version 1. p_request: the body; if_exists says what is done when the
-- id is taken: raise, or do_nothing, which returns the existing assistant. p_known_graph_ids: the graphs that the
-- server of the request executes.
-- Returns: ok with the assistant record; assistant_exists, graph_not_found, invalid_value; too_many_assistants
--          from 10,000 on, which concurrent calls exceed by their number; limit_exceeded.
-- Locks:   the new rows; none on an existing one.
create or replace function agent.create_assistant(
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
    c_assistants constant integer := 10000;
    v_request    agent.assistant_request := json_populate_record(null::agent.assistant_request, p_request);
    v_now        timestamptz := agent.now();
    v_assistant  agent.assistants;
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
       and a.assistant_id = p_assistant_id;
    if not found then
        if v_request.graph_id <> all (p_known_graph_ids)
           and not agent.is_graph_served(p_deployment_id, v_request.graph_id) then
            code := 'graph_not_found';
            return;
        end if;
        if c_assistants <= (
            select count(*)
              from (
                    select
                      from agent.assistants a
                     where a.deployment_id = p_deployment_id
                     limit c_assistants
                   ) x) then
            code := 'too_many_assistants';
            return;
        end if;
        v_assistant.deployment_id := p_deployment_id;
        v_assistant.assistant_id := p_assistant_id;
        v_assistant.graph_id := v_request.graph_id;
        v_assistant.name := case v_request.name
            when '' then v_request.graph_id
            else coalesce(v_request.name, 'Untitled')
        end;
        v_assistant.description := v_request.description;
        v_assistant.config := coalesce(v_request.config, '{}');
        v_assistant.context := coalesce(v_request.context, '{}');
        v_assistant.metadata := coalesce(v_request.metadata, '{}');
        v_assistant.version := 1;
        v_assistant.last_version := 1;
        v_assistant.is_system := false;
        v_assistant.created_at := v_now;
        v_assistant.updated_at := v_now;
        body := agent.check_assistant(v_assistant);
        if body is not null then
            code := 'invalid_value';
            return;
        end if;
        insert into agent.assistants
        select v_assistant.*
            on conflict (deployment_id, assistant_id) do nothing;
        if found then
            perform agent.add_assistant_version(v_assistant);
            code := 'ok';
            body := agent.render_assistant(v_assistant);
            return;
        end if;
        select a.* into v_assistant
          from agent.assistants a
         where a.deployment_id = p_deployment_id
           and a.assistant_id = p_assistant_id;
    end if;
    if v_request.if_exists is distinct from 'do_nothing' or v_assistant.assistant_id is null then
        code := 'assistant_exists';
        return;
    end if;
    code := 'ok';
    body := agent.render_assistant(v_assistant);
end
$function$;

comment on function agent.create_assistant(uuid, uuid, text[], json) is 'POST /assistants.';
