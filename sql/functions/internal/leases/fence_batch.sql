-- SPDX-License-Identifier: Apache-2.0
-- The fence of a batch: as agent.fence_leases, and of the leases under which the batch before this one was saved. The
-- worker numbers the batches of a lease from 1. A failover or a restored backup may have undone the last ones, whatever
-- they had; then the queue row has a lower number, and this batch would leave a gap. The number before is the usual
-- case; an equal one is that of a batch that is repeated after an unclear commit, perhaps in other parts: its rows that
-- are stored change nothing. Any other one fences the run. A statement that the server executes late, after others of
-- the run, saves nothing, and does not take the lease away either.
-- Returns: the queue rows as they were; null for none.
-- Locks:   the queue rows, in the order of their keys; call agent.lock_threads first.
create or replace function agent.fence_batch(p_worker_id bigint, p_runs agent.leased_run[])
returns agent.run_queue[]
language plpgsql volatile security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_bitmapscan = off
set enable_hashjoin = off set enable_mergejoin = off set plan_cache_mode = force_generic_plan
as $function$
declare
    v_leases agent.run_queue[];
    v_rows   tid[];
begin
    -- The number is compared after any wait. A run that ends has no row afterwards.
    select array_agg(l.lease) filter (where (l.lease).batch_no between k.batch_no - 1 and k.batch_no),
           array_agg(l.ctid) filter (where (l.lease).batch_no = k.batch_no - 1 and k.status is null)
      into v_leases, v_rows
      from (
            select x.deployment_id, x.run_id, x.epoch, x.batch_no, x.status
              from unnest(p_runs) x
             order by x.deployment_id, x.run_id
            offset 0
           ) k
     cross join lateral (
            select q as lease, q.ctid
              from agent.run_queue q
             where q.run_id = k.run_id
               and q.deployment_id is not distinct from k.deployment_id
               and q.epoch = k.epoch
               and q.worker_id is not distinct from p_worker_id
               for no key update
           ) l;
    update agent.run_queue q
       set batch_no = q.batch_no + 1
     where q.ctid = any (v_rows);
    return v_leases;
end
$function$;

comment on function agent.fence_batch(bigint, agent.leased_run[]) is
    'Locks the leases that a worker still holds, and numbers the batch.';
