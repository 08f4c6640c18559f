-- SPDX-License-Identifier: Apache-2.0
-- Counts a run that is created, if the runs of its account are counted; where none are (agent.account_counts is
-- empty) the caller saves the call.
-- Returns: nothing.
-- Locks:   one row of the count.
create or replace function agent.count_new_run(p_deployment_id uuid) returns void
language plpgsql volatile security invoker
set search_path = '' set jit = off set enable_seqscan = off
set plan_cache_mode = force_generic_plan
as $function$
begin
    perform agent.add_to_count(d.account_id, 'queued_runs', 1)
       from agent.deployments d
      where d.deployment_id = p_deployment_id;
end
$function$;

comment on function agent.count_new_run(uuid) is 'Counts a run that is created.';
