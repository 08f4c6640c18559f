-- SPDX-License-Identifier: Apache-2.0
-- Counts runs and calls that a claim leases, if the running ones of their accounts are counted: until the count ends,
-- whether there still is a limit or not. p_rows: the row ids
-- of their queue rows.
-- Returns: nothing.
-- Locks:   the caller holds the queue rows; takes one row of each count.
create or replace function agent.count_started_runs(p_rows tid[]) returns void
language plpgsql volatile security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
set plan_cache_mode = force_generic_plan
as $function$
begin
    perform agent.add_to_count(s.account_id, 'running_runs', s.runs)
       from (
            select d.account_id, count(*) as runs
              from agent.run_queue q
              join agent.deployments d on d.deployment_id = q.deployment_id
             where q.ctid = any (p_rows)
             group by d.account_id
           ) s;
end
$function$;

comment on function agent.count_started_runs(tid[]) is 'Counts runs and calls that a claim leases.';
