-- SPDX-License-Identifier: Apache-2.0
-- Adds to the count of what an account has, if it is counted: to the first of its rows that no other transaction
-- holds, so that writers do not wait for each other unless there are more than 16 at once. The row of shard -1 is that
-- of agent.count_accounts.
-- Returns: nothing.
-- Locks:   one row of the count, until the end of the transaction.
create or replace function agent.add_to_count(p_account_id uuid, p_name text, p_value bigint) returns void
language plpgsql volatile security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
as $function$
declare
    v_shard smallint;
begin
    select c.shard into v_shard
      from agent.account_counts c
     where c.account_id = p_account_id
       and c.name = p_name
       and c.shard >= 0
     order by c.shard
     limit 1
       for no key update skip locked;
    -- A separate statement sees the row as it was locked.
    update agent.account_counts c
       set value = c.value + p_value
     where c.account_id = p_account_id
       and c.name = p_name
       and c.shard = coalesce(v_shard, 0);
end
$function$;

comment on function agent.add_to_count(uuid, text, bigint) is 'Adds to the count of what an account has.';
