-- SPDX-License-Identifier: Apache-2.0
-- Revokes keys that have expired, and records it. A database that accepts no writes keeps them for later: that they
-- have expired is known without it.
-- Returns: number of keys that were revoked.
-- Locks:   the keys.
create or replace function agent.expire_api_keys(p_key_ids text[]) returns integer
language plpgsql volatile security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
set plan_cache_mode = force_generic_plan
as $function$
declare
    v_now   timestamptz := agent.now();
    v_key   agent.api_keys;
    v_count integer := 0;
begin
    if current_setting('transaction_read_only')::boolean then
        return 0;
    end if;
    for v_key in
        update agent.api_keys k
           set revoked_at = v_now
         where k.key_id = any (p_key_ids)
           and k.revoked_at is null
        returning k.*
    loop
        perform agent.record_audit(v_key.account_id, 'system', 'key.expire', v_key.key_id);
        v_count := v_count + 1;
    end loop;
    return v_count;
end
$function$;

comment on function agent.expire_api_keys(text[]) is 'Revokes API keys that have expired, and records it.';
