-- SPDX-License-Identifier: Apache-2.0
-- The checkpoint from which an attempt of a leased run starts: for a retry the last checkpoint that the run
-- saved; for a first attempt the one that the request names, else the thread's head.
-- Returns: one row; checkpoint_id null = an empty state. No row when the thread was deleted.
-- Locks:   none.
create or replace function agent.choose_start(
    p_deployment_id uuid,
    p_run_id uuid,
    p_thread_id uuid,
    p_start_checkpoint_id uuid
) returns table (is_retry boolean, checkpoint_id uuid)
language sql stable parallel safe
-- No SET clause: it would keep the body from being inlined into FROM.
as $function$
    select t.is_retry,
           case
               when t.is_retry then t.head_checkpoint_id
               else coalesce(p_start_checkpoint_id, t.head_checkpoint_id)
           end
      from (
            select x.head_checkpoint_id,
                   x.head_run_id is not distinct from p_run_id as is_retry
              from agent.threads x
             where x.deployment_id = p_deployment_id
               and x.thread_id = p_thread_id
             limit 1
           ) t
$function$;

comment on function agent.choose_start(uuid, uuid, uuid, uuid) is
    'Checkpoint from which an attempt of a run starts.';
