-- SPDX-License-Identifier: Apache-2.0
-- A checkpoint, unless its run was deleted and the sweep of its checkpoints is under way.
-- Returns: one row or none.
-- Locks:   none.
create or replace function agent.find_checkpoint(
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
       and k.checkpoint_id = p_checkpoint_id
       and (k.run_id in (
            select s.run_id
              from agent.find_swept_runs(p_deployment_id, p_thread_id) s)) is not true
$function$;

comment on function agent.find_checkpoint(uuid, uuid, text, uuid) is 'A checkpoint of a run that was not deleted.';
