-- SPDX-License-Identifier: Apache-2.0
-- GET /threads/{thread_id}/state and /state/{checkpoint_id}.
-- Returns: ok with the state at p_checkpoint_id, or at the head when that is null; a thread without
--          checkpoints has an empty state; thread_not_found; checkpoint_not_found.
--          cursor: of values of more than p_max_bytes, null = any size, which are not in body: agent.read_values
--          returns them from there, and U+0001, which JSON text cannot contain, stands for them.
-- Locks:   none.
create or replace function agent.get_state(
    p_deployment_id uuid,
    p_thread_id uuid,
    p_checkpoint_id uuid,
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
    select case when c.checkpoint_id is null and p_checkpoint_id is not null
                then 'checkpoint_not_found' else 'ok' end,
           agent.append_values(json_build_object(
               'next', coalesce(c.next, '[]'),
               'tasks', coalesce(x.tasks, '[]'),
               'metadata', case
                   when c.checkpoint_id is null then '{}'
                   else agent.concat_objects(
                       c.metadata,
                       (coalesce(r.metadata, '{}') || jsonb_build_object('thread_id', c.thread_id))::json)
               end,
               'created_at', agent.render_time(c.created_at),
               'checkpoint_id', c.checkpoint_id,
               'parent_checkpoint_id', c.parent_checkpoint_id,
               'checkpoint', agent.render_checkpoint(c.thread_id, c.checkpoint_id),
               'parent_checkpoint', agent.render_checkpoint(c.thread_id, c.parent_checkpoint_id),
               'interrupts', i.flat), coalesce(v.content, '{}')),
           v.cursor
      into code, body, cursor
      from agent.threads t
      left join lateral (
            select k.*
              from agent.checkpoints k
             where k.deployment_id = t.deployment_id
               and k.thread_id = t.thread_id
               and k.checkpoint_ns = ''
               and k.checkpoint_id = coalesce(p_checkpoint_id, t.head_checkpoint_id)
               and (k.run_id in (
                    select s.run_id
                      from agent.find_swept_runs(p_deployment_id, p_thread_id) s)) is not true
             limit 1
           ) c on true
      left join lateral agent.find_origin(c.deployment_id, c.thread_id, c.run_id) r on true
     cross join lateral agent.compose_bounded_values(
            t.deployment_id, t.thread_id, c.checkpoint_id, c.channels, c.state_bytes, p_max_bytes) v
     cross join lateral (
            select agent.render_tasks(c.deployment_id, c.thread_id, c.checkpoint_ns, c.checkpoint_id, c.tasks) as tasks
            -- Once, though two columns use it.
            offset 0
           ) x
     cross join lateral agent.render_interrupts(x.tasks) i
     where t.deployment_id = p_deployment_id
       and t.thread_id = p_thread_id
       and not t.is_deleted;
    if not found then
        code := 'thread_not_found';
    elsif code <> 'ok' then
        body := null;
    end if;
end
$function$;

comment on function agent.get_state(uuid, uuid, uuid, bigint) is 'GET /threads/{thread_id}/state.';
