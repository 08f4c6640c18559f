-- SPDX-License-Identifier: Apache-2.0
-- GET /threads/{thread_id}/state and /state/{checkpoint_id}.
-- Returns: ok with the state at p_checkpoint_id, or at the head when that is null; a thread without
--          checkpoints has an empty state; thread_not_found; checkpoint_not_found.
-- Locks:   none.
create or replace function agent.get_state(
    p_deployment_id uuid,
    p_thread_id uuid,
    p_checkpoint_id uuid,
    out code text,
    out body text
)
language plpgsql stable security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_hashjoin = off
set plan_cache_mode = force_generic_plan
as $function$
begin
    select case when c.checkpoint_id is null and p_checkpoint_id is not null
                then 'checkpoint_not_found' else 'ok' end,
           json_build_object(
               'values', coalesce(v.content, '{}'),
               'next', coalesce(c.next, '[]'),
               'tasks', case
                   when r.error is not null and r.last_checkpoint_id = c.checkpoint_id
                   then agent.render_failed_tasks(c.tasks, c.next, r.run_id, r.error ->> 'message')
                   else coalesce(c.tasks, '[]')
               end,
               'metadata', case
                   when c.checkpoint_id is null then '{}'
                   when r.run_id is null then c.metadata
                   else agent.concat_objects(
                       c.metadata,
                       (
                           (r.config -> 'metadata') - array['source', 'step', 'writes', 'parents']
                           || jsonb_build_object(
                               'run_id', r.run_id,
                               'user_id', r.config #> '{configurable,user_id}',
                               'graph_id', r.graph_id,
                               'thread_id', r.thread_id,
                               'assistant_id', r.assistant_id)
                       )::json)
               end,
               'created_at', agent.render_time(c.created_at),
               'checkpoint_id', c.checkpoint_id,
               'parent_checkpoint_id', c.parent_checkpoint_id,
               'checkpoint', agent.render_checkpoint(c.thread_id, c.checkpoint_id),
               'parent_checkpoint', agent.render_checkpoint(c.thread_id, c.parent_checkpoint_id),
               'interrupts', i.flat)
      into code, body
      from agent.threads t
      left join lateral (
            select k.*
              from agent.checkpoints k
             where k.deployment_id = t.deployment_id
               and k.thread_id = t.thread_id
               and k.checkpoint_ns = ''
               and k.checkpoint_id = coalesce(p_checkpoint_id, t.head_checkpoint_id)
             limit 1
           ) c on true
      left join lateral (
            select x.*
              from agent.runs x
             where x.run_id = c.run_id
               and x.deployment_id is not distinct from c.deployment_id
             limit 1
           ) r on true
     cross join lateral agent.compose_values(t.deployment_id, t.thread_id, c.channels) v
     cross join lateral agent.render_interrupts(c.tasks) i
     where t.deployment_id = p_deployment_id
       and t.thread_id = p_thread_id;
    if not found then
        code := 'thread_not_found';
    elsif code <> 'ok' then
        body := null;
    end if;
end
$function$;

comment on function agent.get_state(uuid, uuid, uuid) is 'GET /threads/{thread_id}/state.';
