-- SPDX-License-Identifier: Apache-2.0
-- Internal. The fence: locks the leases that the worker still holds. While the locks are held
-- nobody can give these runs to another worker; a plain read would prove nothing at commit.
-- Returns: nothing; the caller's next statement sees what is held.
-- Locks:   the threads of keys with locks_thread, then the queue rows, each in the order of their keys.
create or replace function agent.lock_leases(p_worker_id bigint, p_keys agent.run_report[]) returns void
language plpgsql volatile security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_hashjoin = off
set enable_mergejoin = off set plan_cache_mode = force_generic_plan
as $function$
begin
    perform from (
            select q.account_id, q.thread_id
              from unnest(p_keys) k
             cross join lateral agent.find_lease(p_worker_id, k.account_id, k.run_id, k.epoch) q
             where k.locks_thread
             order by q.account_id, q.thread_id
            offset 0
           ) k
     cross join lateral (
            select from agent.threads t
             where t.account_id = k.account_id
               and t.thread_id = k.thread_id
               for no key update
           ) l;

    -- The condition of agent.find_lease, evaluated again on the row as it is after a wait.
    perform from (
            select x.account_id, x.run_id, x.epoch
              from unnest(p_keys) x
             order by x.account_id, x.run_id
            offset 0
           ) k
     cross join lateral (
            select from agent.run_queue q
             where q.run_id = k.run_id
               and q.account_id is not distinct from k.account_id
               and q.epoch = k.epoch
               and q.worker_id is not distinct from p_worker_id
               for no key update
           ) l;
end
$function$;

comment on function agent.lock_leases(bigint, agent.run_report[]) is
    'Locks the leases that a worker still holds.';
