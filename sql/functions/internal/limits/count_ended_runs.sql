-- SPDX-License-Identifier: Apache-2.0
-- Takes runs and calls that have left the queue, or are to be ready again (p_are_requeued), from the counts of their
-- accounts. p_rows: their queue rows as they were before.
-- Returns: nothing.
-- Locks:   one row of each count.
create or replace function agent.count_ended_runs(
    p_rows agent.run_queue[],
    p_are_requeued boolean default false
) returns void
language plpgsql volatile security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
set plan_cache_mode = force_generic_plan
as $function$
begin
    if not exists (select from agent.account_counts) then
        return;
    end if;
    perform agent.add_to_count(e.account_id, c.name, -c.value)
       from (
            select d.account_id,
                   count(*) filter (where r.op is distinct from 'describe' and not p_are_requeued) as ended,
                   count(*) filter (where r.worker_id is not null) as running
              from unnest(p_rows) r
              join agent.deployments d on d.deployment_id = r.deployment_id
             group by d.account_id
           ) e
      cross join lateral (values ('queued_runs', e.ended), ('running_runs', e.running)) c (name, value)
      -- Of no change no row is held.
      where c.value <> 0;
end
$function$;

comment on function agent.count_ended_runs(agent.run_queue[], boolean) is
    'Takes ended runs from the counts of their accounts.';
