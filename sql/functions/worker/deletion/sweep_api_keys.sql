-- SPDX-License-Identifier: Apache-2.0
-- Revokes API keys that have expired, the first ones first, and deletes those that were revoked 90 days ago.
-- Returns: number of keys: call again while it is not 0.
-- Locks:   the keys; those that are locked are passed over.
create or replace function agent.sweep_api_keys() returns integer
language plpgsql volatile security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
as $function$
declare
    v_now timestamptz := agent.now();
begin
    return agent.expire_api_keys(array(
        select k.key_id
          from agent.api_keys k
         where k.expires_at <= v_now
           and k.revoked_at is null
         order by k.expires_at
         limit 1000
           for update skip locked)) + agent.delete_revoked_keys();
end
$function$;

comment on function agent.sweep_api_keys() is 'Revokes API keys that have expired, and deletes old ones.';
