-- SPDX-License-Identifier: Apache-2.0
-- Whether an account may have one more valid API key. Concurrent creations for it come one after the other, so the
-- count is exact. p_replaced: keys that the new one takes the place of.
-- Returns: null if it may; else the limit (agent.render_limit).
-- Locks:   an account with a limit.
create or replace function agent.check_key_limit(p_account_id uuid, p_replaced integer) returns text
language plpgsql volatile security invoker
set search_path = '' set jit = off set enable_seqscan = off
set plan_cache_mode = force_generic_plan
as $function$
declare
    v_now   timestamptz;
    v_limit bigint := agent.find_limit(p_account_id, 'keys');
    v_count bigint;
begin
    if v_limit is null then
        return null;
    end if;
    perform from agent.accounts a
      where a.account_id = p_account_id
        for no key update;
    v_now := agent.now();
    select count(*) into v_count
      from (
            select
              from agent.api_keys k
             where k.account_id = p_account_id
               and coalesce(k.revoked_at, '-infinity') = '-infinity'
               and (k.expires_at <= v_now) is not true
             limit v_limit + p_replaced
           ) x;
    return case when v_count >= v_limit + p_replaced then agent.render_limit('keys', v_limit) end;
end
$function$;

comment on function agent.check_key_limit(uuid, integer) is 'Whether an account may have one more API key.';
