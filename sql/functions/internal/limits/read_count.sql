-- SPDX-License-Identifier: Apache-2.0
-- The count of an account, which begins here if there was none. It misses transactions that have not committed:
-- several of them together may exceed a limit, each by the runs that it creates.
-- Returns: the count; 0 for an account that is closed, unless it has been counted before.
-- Locks:   the rows of a new count.
create or replace function agent.read_count(p_account_id uuid, p_name text) returns bigint
language plpgsql volatile security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
as $function$
declare
    v_count bigint;
begin
    for v_attempt in 1..2 loop
        select sum(c.value) into v_count
          from agent.account_counts c
         where c.account_id = p_account_id
           and c.name = p_name;
        exit when v_count is not null or v_attempt = 2;
        perform agent.begin_counts(array[p_account_id], p_name);
    end loop;
    return coalesce(v_count, 0);
end
$function$;

comment on function agent.read_count(uuid, text) is 'What an account has.';
