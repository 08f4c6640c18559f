-- SPDX-License-Identifier: Apache-2.0
-- Locks the leases that the worker still holds, and before them their threads.
-- Returns: nothing; the caller's next statement reads what is held.
-- Locks:   the threads of runs with locks_thread, then the queue rows, each in the order of their keys.
create or replace function agent.lock_leases(p_worker_id bigint, p_runs agent.leased_run[]) returns void
language plpgsql volatile security invoker
set search_path = '' set plan_cache_mode = force_generic_plan
as $function$
begin
    perform agent.lock_threads(p_worker_id, p_runs);
    perform agent.fence_leases(p_worker_id, p_runs);
end
$function$;

comment on function agent.lock_leases(bigint, agent.leased_run[]) is
    'Locks the leases that a worker still holds.';
