-- SPDX-License-Identifier: Apache-2.0
-- GET /assistants/{assistant_id}.
-- Returns: ok with the assistant record; assistant_not_found.
-- Locks:   none.
create or replace function agent.get_assistant(
    p_deployment_id uuid,
    p_assistant_id uuid,
    out code text,
    out body text
)
language plpgsql stable security invoker
set search_path = '' set jit = off set enable_seqscan = off set plan_cache_mode = force_generic_plan
as $function$
begin
    select 'ok', agent.render_assistant(a)
      into code, body
      from agent.assistants a
     where a.deployment_id = p_deployment_id
       and a.assistant_id = p_assistant_id;
    if not found then
        code := 'assistant_not_found';
    end if;
end
$function$;

comment on function agent.get_assistant(uuid, uuid) is 'GET /assistants/{assistant_id}.';
