-- SPDX-License-Identifier: Apache-2.0
-- GET /threads/{thread_id}.
-- Returns: ok with the thread record, its values those of the head checkpoint; thread_not_found.
--          cursor: as of agent.get_state, of values of more than p_max_bytes, null = any size.
-- Locks:   none.
create or replace function agent.get_thread(
    p_deployment_id uuid,
    p_thread_id uuid,
    p_max_bytes bigint default null,
    out code text,
    out body text,
    out cursor text
)
language plpgsql stable security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_hashjoin = off
set plan_cache_mode = force_generic_plan
as $function$
begin
    select 'ok', agent.render_thread(t, v.content, i.by_task), v.cursor
      into code, body, cursor
      from agent.threads t
      left join lateral (
            select k.channels, k.state_bytes, k.checkpoint_id, agent.render_tasks(
                       k.deployment_id, k.thread_id, k.checkpoint_ns, k.checkpoint_id, k.tasks) as tasks
              from agent.checkpoints k
             where k.deployment_id = t.deployment_id
               and k.thread_id = t.thread_id
               and k.checkpoint_ns = ''
               and k.checkpoint_id = t.head_checkpoint_id
             limit 1
           ) c on true
     cross join lateral agent.compose_bounded_values(
            t.deployment_id, t.thread_id, c.checkpoint_id, c.channels, c.state_bytes, p_max_bytes) v
     cross join lateral agent.render_interrupts(c.tasks) i
     where t.deployment_id = p_deployment_id
       and t.thread_id = p_thread_id
       and not t.is_deleted;
    if not found then
        code := 'thread_not_found';
    end if;
end
$function$;

comment on function agent.get_thread(uuid, uuid, bigint) is 'GET /threads/{thread_id}.';
