-- SPDX-License-Identifier: Apache-2.0
-- Adds to the result of the last measure of the deployment's account, if it has one.
-- Returns: nothing.
-- Locks:   the row of the measure: call it last. agent.measure_accounts holds it for 50 ms.
create or replace function agent.change_measure(p_deployment_id uuid, p_bytes bigint) returns void
language plpgsql volatile security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
as $function$
begin
    update agent.account_measures m
       set bytes = m.bytes + p_bytes
     where m.account_id = (
            select d.account_id
              from agent.deployments d
             where d.deployment_id = p_deployment_id);
end
$function$;

comment on function agent.change_measure(uuid, bigint) is 'Adds to the result of the last measure.';
