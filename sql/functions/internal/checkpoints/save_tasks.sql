-- SPDX-License-Identifier: Apache-2.0
-- Saves reports about tasks, in place of those that the same run sent before. A report about a checkpoint or a task
-- that does not exist is saved too, but not shown. The leases are joined by hash, as in agent.save_events.
-- Returns: nothing.
-- Locks:   the caller holds the queue rows.
create or replace function agent.save_tasks(
    p_leases agent.run_queue[],
    p_tasks agent.batch_task[]
) returns void
language plpgsql volatile security invoker
set search_path = '' set jit = off set enable_nestloop = off set enable_mergejoin = off
set enable_hashjoin = on set plan_cache_mode = force_generic_plan
as $function$
begin
    insert into agent.checkpoint_tasks (
        deployment_id, thread_id, checkpoint_id, task_id, run_id, checkpoint_ns, task, saved_at)
    select distinct on (q.deployment_id, q.thread_id, i.checkpoint_id, i.task_id, q.run_id)
           q.deployment_id, q.thread_id, i.checkpoint_id, i.task_id, q.run_id, i.checkpoint_ns, i.task, agent.now()
      from unnest(p_tasks) with ordinality i
      join unnest(p_leases) q
        on q.deployment_id = i.deployment_id
       and q.run_id = i.run_id
       and q.epoch = i.epoch
     order by q.deployment_id, q.thread_id, i.checkpoint_id, i.task_id, q.run_id, i.ordinality desc
        on conflict (deployment_id, thread_id, checkpoint_id, task_id, run_id) do update
       set checkpoint_ns = excluded.checkpoint_ns,
           task = excluded.task,
           saved_at = excluded.saved_at;
end
$function$;

comment on function agent.save_tasks(agent.run_queue[], agent.batch_task[]) is
    'Saves reports about tasks of checkpoints.';
