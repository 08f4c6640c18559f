-- SPDX-License-Identifier: Apache-2.0
-- Ends the runs of a worker whose accounts have stored as many bytes as they may, in error: each would store more. Runs
-- that are queued wait (agent.find_free_runs). The output that is saved stays. At most 50: call again while any are
-- returned.
-- Returns: the runs that were ended.
-- Locks:   the thread, then the queue row, then the record of each run, and rows of the counts of its account.
create or replace function agent.end_full_runs(p_worker_id bigint) returns table (run_id uuid, thread_id uuid)
language plpgsql volatile security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off
set enable_mergejoin = off set plan_cache_mode = force_generic_plan
as $function$
#variable_conflict use_column
declare
    c_runs constant integer := 50;
    v_runs agent.leased_run[];
    v_run  agent.leased_run;
begin
    if not exists (select from agent.account_measures) then
        return;
    end if;
    v_runs := array(
        select agent.make_leased_run(q.deployment_id, q.run_id, q.epoch)
          from (
                -- By the index of leases alone.
                select x.deployment_id, x.run_id, x.epoch
                  from agent.run_queue x
                 where x.worker_id = p_worker_id
                   and x.op is null
                offset 0
               ) q
         where agent.check_stored_bytes(q.deployment_id) is not null
         limit c_runs);
    -- Of all before the first one ends: in the order of their keys.
    perform agent.lock_leases(p_worker_id, v_runs);
    foreach v_run in array v_runs
    loop
        return query
            select e.run_id, e.thread_id
              from agent.fail_run(
                       p_worker_id, v_run.deployment_id, v_run.run_id, v_run.epoch, 'StoredBytesExceededError',
                       'The account may not store more (AgentLimit stored_bytes).') e;
    end loop;
end
$function$;

comment on function agent.end_full_runs(bigint) is 'Ends runs of accounts that may not store more.';
