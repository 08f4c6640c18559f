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
            select distinct q.account_id, q.thread_id
              from unnest(p_keys) k
              join agent.run_queue q
                on q.account_id = k.account_id
               and q.run_id = k.run_id
             where k.locks_thread
               and agent.holds_lease(q, p_worker_id, k.epoch)
           ) x
      join agent.threads t
        on t.account_id = x.account_id
       and t.thread_id = x.thread_id
     order by t.account_id, t.thread_id
       for no key update of t;

    perform from unnest(p_keys) k
      join agent.run_queue q
        on q.account_id = k.account_id
       and q.run_id = k.run_id
     where agent.holds_lease(q, p_worker_id, k.epoch)
     order by q.account_id, q.run_id
       for no key update of q;
end
$function$;

comment on function agent.lock_leases(bigint, agent.run_report[]) is 'Locks the leases that a worker still holds.';
