-- SPDX-License-Identifier: Apache-2.0
-- Adds to the count of what the deployment's account has, if it is counted; where nothing is (agent.account_counts is
-- empty) the caller saves the call.
-- Returns: nothing.
-- Locks:   one row of the count.
create or replace function agent.change_count(p_deployment_id uuid, p_name text, p_change bigint) returns void
language plpgsql volatile security invoker
set search_path = '' set jit = off set enable_seqscan = off
set plan_cache_mode = force_generic_plan
as $function$
begin
    perform agent.add_to_count(d.account_id, p_name, p_change)
       from agent.deployments d
      where d.deployment_id = p_deployment_id;
end
$function$;

comment on function agent.change_count(uuid, text, bigint) is 'Adds to the count of what an account has.';
