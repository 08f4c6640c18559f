-- SPDX-License-Identifier: Apache-2.0
-- The writes of a snapshot, without those of deleted runs, and without those to a deleted snapshot of the same id: of
-- those of one idx the oldest run's, or the newest run's when idx is negative.
-- Returns: rows, in the order of task_id and idx.
-- Locks:   none.
create or replace function agent.find_writes(
    p_deployment_id uuid,
    p_thread_id uuid,
    p_checkpoint_ns text,
    p_checkpoint_id uuid
) returns table (task_id text, idx integer, channel text, digests uuid[], is_list boolean, task_path text, run_id uuid)
language sql stable parallel safe
-- No SET clause: it would keep the body from being inlined into FROM.
as $function$
    select distinct on (w.task_id, w.idx) w.task_id, w.idx, w.channel, w.digests, w.is_list, w.task_path,
           w.run_id
      from agent.checkpoint_writes w
     where w.deployment_id = p_deployment_id
       and w.thread_id = p_thread_id
       and w.checkpoint_ns = p_checkpoint_ns
       and w.checkpoint_id = p_checkpoint_id
       and w.deletions >= coalesce((
            select s.deletions
              from agent.find_write_sweep(p_deployment_id, p_thread_id, p_checkpoint_ns, p_checkpoint_id) s), 0)
       and (w.run_id in (select s.run_id from agent.find_swept_runs(p_deployment_id, p_thread_id) s)) is not true
     order by w.task_id, w.idx, case when w.idx < 0 then - w.run_seq else w.run_seq end
$function$;

comment on function agent.find_writes(uuid, uuid, text, uuid) is 'The writes of a snapshot.';
