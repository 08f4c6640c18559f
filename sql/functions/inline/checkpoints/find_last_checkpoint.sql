-- SPDX-License-Identifier: Apache-2.0
-- The last checkpoint of a namespace, or with p_checkpoint_id that one, of the runs that were not deleted.
-- Returns: one row or none.
-- Locks:   none.
create or replace function agent.find_last_checkpoint(
    p_deployment_id uuid,
    p_thread_id uuid,
    p_checkpoint_ns text,
    p_checkpoint_id uuid
) returns setof agent.checkpoints
language sql stable parallel safe
-- No SET clause: it would keep the body from being inlined into FROM.
as $function$
    select k.*
      from agent.checkpoints k
     where k.deployment_id = p_deployment_id
       and k.thread_id = p_thread_id
       and k.checkpoint_ns = p_checkpoint_ns
       -- One range for both: a choice would leave the planner no index.
       and k.checkpoint_id between coalesce(p_checkpoint_id, '00000000-0000-0000-0000-000000000000')
       and coalesce(p_checkpoint_id, 'ffffffff-ffff-ffff-ffff-ffffffffffff')
       and (k.run_id in (
            select s.run_id
              from agent.find_swept_runs(p_deployment_id, p_thread_id) s)) is not true
     order by k.deployment_id desc, k.thread_id desc, k.checkpoint_ns desc, k.checkpoint_id desc
     limit 1
$function$;

comment on function agent.find_last_checkpoint(uuid, uuid, text, uuid) is 'The last checkpoint of a namespace.';
