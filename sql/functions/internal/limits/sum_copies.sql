-- SPDX-License-Identifier: Apache-2.0
-- Bytes that the copies of threads of an account have stored which are under way, or were given up and are not swept.
-- Returns: the sum.
-- Locks:   none.
create or replace function agent.sum_copies(p_account_id uuid) returns bigint
language plpgsql stable security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off
set enable_mergejoin = off set plan_cache_mode = force_generic_plan
as $function$
begin
    return (
        select coalesce(sum(agent.sum_bytes(c.stored_bytes)), 0)::bigint
          from agent.deployments d
          join agent.thread_copies c on c.deployment_id = d.deployment_id
         where d.account_id = p_account_id);
end
$function$;

comment on function agent.sum_copies(uuid) is 'Bytes of the copies of threads of an account that are under way.';
