-- SPDX-License-Identifier: Apache-2.0
-- The newest report about a task of a checkpoint, of any run that is not being deleted.
-- p_until: reports that were saved later are passed over.
-- Returns: one row or none: the members that the run has sent, as text.
-- Locks:   none.
create or replace function agent.find_task_report(
    p_deployment_id uuid,
    p_thread_id uuid,
    p_checkpoint_ns text,
    p_checkpoint_id uuid,
    p_task_id text,
    p_until timestamptz
) returns table (task text, saved_at timestamptz)
language sql stable parallel safe
-- No SET clause: it would keep the body from being inlined into FROM.
as $function$
    select x.task, x.saved_at
      from agent.checkpoint_tasks x
     where x.deployment_id = p_deployment_id
       and x.thread_id = p_thread_id
       and x.checkpoint_id = p_checkpoint_id
       and x.task_id = p_task_id
       and x.checkpoint_ns = p_checkpoint_ns
       and x.saved_at <= p_until
       and (x.run_id in (select s.run_id from agent.find_swept_runs(p_deployment_id, p_thread_id) s)) is not true
     order by x.saved_at desc, x.run_id desc
     limit 1
$function$;

comment on function agent.find_task_report(uuid, uuid, text, uuid, text, timestamptz) is
    'The newest report about a task of a checkpoint.';
