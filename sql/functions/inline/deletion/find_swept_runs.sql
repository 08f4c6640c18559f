-- SPDX-License-Identifier: Apache-2.0
-- The deleted runs of a thread of which checkpoints, snapshots, writes or reports about tasks are left for
-- agent.sweep_state: nothing reads, counts or copies these. A query compares with
-- `(x.run_id in (select ...)) is not true`: the list is then read once, and each row looked up in a hash table.
-- Returns: their ids.
-- Locks:   none.
create or replace function agent.find_swept_runs(p_deployment_id uuid, p_thread_id uuid)
returns table (run_id uuid)
language sql stable parallel safe
-- No SET clause: it would keep the body from being inlined into FROM.
as $function$
    select s.run_id
      from agent.run_sweeps s
     where s.deployment_id = p_deployment_id
       and s.thread_id = p_thread_id
$function$;

comment on function agent.find_swept_runs(uuid, uuid) is 'The runs of a thread whose deletion is not complete.';
