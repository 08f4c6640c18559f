-- SPDX-License-Identifier: Apache-2.0
-- Of a deleted snapshot whose writes wait for agent.sweep_state: those with smaller checkpoint_writes.deletions are
-- nothing to read, count or copy.
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
    'Of a deleted snapshot, which writes are being deleted.';
