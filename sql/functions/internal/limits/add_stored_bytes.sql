-- SPDX-License-Identifier: Apache-2.0
-- Adds the bytes that a piece of a copy has stored to the measure of the deployment's account, if it has one: a short
-- request would otherwise store far more than the limit before the next measure. They are added to the result of a
-- measure that is under way too: it may find them as well, and the next one corrects it.
-- Returns: nothing.
-- Locks:   the row of the measure: call it last. agent.measure_accounts holds it for 50 ms.
create or replace function agent.add_stored_bytes(p_deployment_id uuid, p_bytes bigint) returns void
language plpgsql volatile security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
as $function$
begin
    update agent.account_measures m
       set bytes = m.bytes + p_bytes,
           copied_bytes = m.copied_bytes + p_bytes
     where m.account_id = (
            select d.account_id
              from agent.deployments d
             where d.deployment_id = p_deployment_id);
end
$function$;

comment on function agent.add_stored_bytes(uuid, bigint) is 'Adds what a copy has stored to the measure of an account.';
