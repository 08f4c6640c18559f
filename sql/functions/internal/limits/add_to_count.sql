-- SPDX-License-Identifier: Apache-2.0
-- Adds to the count of what an account has, if it is counted: to the first of its 16 rows that no other transaction
-- holds; when all are held, to a row of this backend, which agent.fold_counts takes away. So writers never wait for
-- each other here: counts are outside the order of locks, and a transaction may change them in any order without a
-- deadlock. For the same reason agent.begin_counts and agent.count_accounts wait for no row of a count, and
-- agent.end_counts holds none while it waits. The row of shard -1 is that of agent.count_accounts.
-- Returns: nothing.
-- Locks:   one row of the count, until the end of the transaction.
create or replace function agent.add_to_count(p_account_id uuid, p_name text, p_value bigint) returns void
language plpgsql volatile security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
as $function$
declare
    v_shard integer;
begin
    select c.shard into v_shard
      from agent.account_counts c
     where c.account_id = p_account_id
       and c.name = p_name
       and c.shard between 0 and 15
     order by c.shard
     limit 1
       for no key update skip locked;
    if found then
        -- A separate statement sees the row as it was locked.
        update agent.account_counts c
           set value = c.value + p_value
         where c.account_id = p_account_id
           and c.name = p_name
           and c.shard = v_shard;
    elsif exists (select from agent.account_counts c where c.account_id = p_account_id and c.name = p_name) then
        insert into agent.account_counts as c (account_id, name, shard, value, counted_at)
        values (p_account_id, p_name, 16 + pg_backend_pid(), p_value, '-infinity')
            on conflict (account_id, name, shard) do update
           set value = c.value + excluded.value;
    end if;
end
$function$;

comment on function agent.add_to_count(uuid, text, bigint) is 'Adds to the count of what an account has.';
