-- SPDX-License-Identifier: Apache-2.0
-- A limit of an account: its own, or that of all accounts without one.
-- Returns: the most that it may have; null: there is no limit.
-- Locks:   none.
create or replace function agent.find_limit(p_account_id uuid, p_name text) returns bigint
language plpgsql stable security invoker
set search_path = '' set jit = off set enable_seqscan = off
set plan_cache_mode = force_generic_plan
as $function$
declare
    v_value bigint;
begin
    -- The nil UUID, of all accounts, comes first in the order.
    select l.value into v_value
      from agent.account_limits l
     where l.account_id in (p_account_id, '00000000-0000-0000-0000-000000000000')
       and l.name = p_name
     order by l.account_id desc
     limit 1;
    return v_value;
end
$function$;

comment on function agent.find_limit(uuid, text) is 'A limit of an account.';
