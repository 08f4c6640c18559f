-- SPDX-License-Identifier: Apache-2.0
-- Locks the threads of the runs with locks_thread whose leases the worker holds. The queue rows are locked
-- afterwards, by agent.fence_leases.
-- Returns: nothing.
-- Locks:   the threads, in the order of their keys.
create or replace function agent.lock_threads(p_worker_id bigint, p_runs agent.leased_run[]) returns void
language plpgsql volatile security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_hashjoin = off
set enable_mergejoin = off set plan_cache_mode = force_generic_plan
as $function$
begin
    perform from (
            select q.deployment_id, q.thread_id
              from unnest(p_runs) k
             cross join lateral agent.find_lease(p_worker_id, k.deployment_id, k.run_id, k.epoch) q
             where k.locks_thread
             order by q.deployment_id, q.thread_id
            offset 0
           ) k
     cross join lateral (
            select from agent.threads t
             where t.deployment_id = k.deployment_id
               and t.thread_id = k.thread_id
               for no key update
           ) l;
end
$function$;

comment on function agent.lock_threads(bigint, agent.leased_run[]) is
    'Locks the threads of a worker''s leases.';
