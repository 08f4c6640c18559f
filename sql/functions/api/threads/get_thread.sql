-- SPDX-License-Identifier: Apache-2.0
-- GET /threads/{thread_id}. p_has_ttl: whether the record has ttl, if the thread has one.
-- Returns: ok with the thread record, its values those of the head checkpoint; thread_not_found.
--          cursor: as in agent.get_state.
-- Locks:   none.
create or replace function agent.get_thread(
    p_deployment_id uuid,
    p_thread_id uuid,
    p_max_bytes bigint default null,
    p_has_ttl boolean default false,
    out code text,
    out body text,
    out cursor text
)
language plpgsql stable security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_hashjoin = off
set plan_cache_mode = force_generic_plan
as $function$
begin
    select 'ok', case when p_has_ttl and t.ttl is not null then agent.prepend_ttl(t, c.body) else c.body end, c.cursor
      into code, body, cursor
      from agent.threads t
     cross join lateral agent.compose_thread(t, null, p_max_bytes) c
     where t.deployment_id = p_deployment_id
       and t.thread_id = p_thread_id
       and not t.is_deleted;
    if not found then
        code := 'thread_not_found';
    end if;
end
$function$;

comment on function agent.get_thread(uuid, uuid, bigint, boolean) is 'GET /threads/{thread_id}.';
