-- SPDX-License-Identifier: Apache-2.0
-- The row of agent.write_sweeps of a deleted snapshot. Writes to it whose checkpoint_writes.deletions is smaller wait
-- for agent.sweep_state: they are not read, counted or copied.
-- Returns: one row or none.
-- Locks:   none.
create or replace function agent.find_write_sweep(
    p_deployment_id uuid,
    p_thread_id uuid,
    p_checkpoint_ns text,
    p_checkpoint_id uuid
) returns table (deletions bigint)
language sql stable parallel safe
-- No SET clause: it would keep the body from being inlined into FROM.
as $function$
    select s.deletions
      from agent.write_sweeps s
     where s.deployment_id = p_deployment_id
       and s.thread_id = p_thread_id
       and s.checkpoint_ns = p_checkpoint_ns
       and s.checkpoint_id = p_checkpoint_id
$function$;

comment on function agent.find_write_sweep(uuid, uuid, text, uuid) is
    'Which writes to a deleted snapshot are to be swept.';
