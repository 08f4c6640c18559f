-- SPDX-License-Identifier: Apache-2.0
-- Whether the writes of a deleted run wait for agent.sweep_writes: nothing may read, count or copy them. The
-- query that calls it ends with `offset 0`, so that PostgreSQL makes no join of it, which would find the writes in
-- another way.
-- Returns: a row, or none.
-- Locks:   none.
create or replace function agent.find_write_sweep(p_deployment_id uuid, p_thread_id uuid, p_run_id uuid)
returns table (is_found boolean)
language sql stable parallel safe
-- No SET clause: it would keep the body from being inlined into FROM.
as $function$
    select true
      from agent.write_sweeps s
     where s.deployment_id = p_deployment_id
       and s.thread_id = p_thread_id
       and not s.is_snapshot
       and s.checkpoint_ns = ''
       and s.deleted_id = p_run_id
$function$;

comment on function agent.find_write_sweep(uuid, uuid, uuid) is 'Whether the writes of a run are being deleted.';
