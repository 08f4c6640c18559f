-- SPDX-License-Identifier: Apache-2.0
-- The fence: locks the leases that the worker still holds. While these locks are held, no other worker can
-- get the runs; a plain read would prove nothing at commit.
-- Returns: the queue rows as they are after any wait; null for none.
-- Locks:   the queue rows, in the order of their keys; call agent.lock_threads first.
create or replace function agent.fence_leases(p_worker_id bigint, p_runs agent.leased_run[])
returns agent.run_queue[]
language plpgsql volatile security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_bitmapscan = off
set enable_hashjoin = off set enable_mergejoin = off set plan_cache_mode = force_generic_plan
as $function$
begin
    -- The condition of agent.find_lease, evaluated again on the row as it is after a wait.
    return (
        select array_agg(l.lease)
          from (
                select x.deployment_id, x.run_id, x.epoch
                  from unnest(p_runs) x
                 order by x.deployment_id, x.run_id
                offset 0
               ) k
         cross join lateral (
                select q as lease
                  from agent.run_queue q
                 where q.run_id = k.run_id
                   and q.deployment_id is not distinct from k.deployment_id
                   and q.epoch = k.epoch
                   and q.worker_id is not distinct from p_worker_id
                   for no key update
               ) l);
end
$function$;

comment on function agent.fence_leases(bigint, agent.leased_run[]) is
    'Locks and reads the leases that a worker still holds.';
