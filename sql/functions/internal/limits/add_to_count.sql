-- SPDX-License-Identifier: Apache-2.0
-- Adds to the count of what an account has, if it is counted: to the first of its 16 rows that no other transaction
-- holds; when all are held, to a row of this backend, which agent.fold_counts takes away; when that one is being taken
-- away, to another one. So writers never wait here: counts are outside the order of locks, and a transaction may
-- change them in any order without a deadlock. For the same reason agent.begin_counts, agent.count_accounts and
-- agent.delete_count wait for no row of a count. The row of shard -1 is that of agent.count_accounts, which also says
-- whether the count has ended: then nothing is added. A transaction that inserts a row holds it (key share, which
-- a count permits), so that no row outlives its count.
-- Returns: nothing.
-- Locks:   one row of the count, until the end of the transaction.
create or replace function agent.add_to_count(p_account_id uuid, p_name text, p_value bigint) returns void
language plpgsql volatile security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
as $function$
declare
    -- More than the number of any process.
    c_step  constant integer := 4194304;
    c_own   constant integer := 16 + pg_backend_pid();
    v_shard integer;
begin
    select c.shard into v_shard
      from agent.account_counts c
     where c.account_id = p_account_id
       and c.name = p_name
       and c.shard between 0 and 15
       and exists (
            select
              from agent.account_counts e
             where e.account_id = p_account_id
               and e.name = p_name
               and e.shard = -1
               and e.counted_at < 'infinity')
     order by c.shard
     limit 1
       for no key update skip locked;
    if not found then
        perform
           from agent.account_counts c
          where c.account_id = p_account_id
            and c.name = p_name
            and c.shard = -1
            and c.counted_at < 'infinity'
            for key share skip locked;
        if not found then
            return;
        end if;
        select c.shard into v_shard
          from agent.account_counts c
         where c.account_id = p_account_id
           and c.name = p_name
           and c.shard > 15
           and (c.shard - c_own) % c_step = 0
         order by c.shard
         limit 1
           for no key update skip locked;
    end if;
    if v_shard is not null then
        -- A separate statement sees the row as it was locked.
        update agent.account_counts c
           set value = c.value + p_value
         where c.account_id = p_account_id
           and c.name = p_name
           and c.shard = v_shard;
    else
        insert into agent.account_counts (account_id, name, shard, value, counted_at)
        select p_account_id, p_name, coalesce(max(c.shard) + c_step, c_own), p_value, '-infinity'
          from agent.account_counts c
         where c.account_id = p_account_id
           and c.name = p_name
           and c.shard > 15
           and (c.shard - c_own) % c_step = 0;
    end if;
end
$function$;

comment on function agent.add_to_count(uuid, text, bigint) is 'Adds to the count of what an account has.';
