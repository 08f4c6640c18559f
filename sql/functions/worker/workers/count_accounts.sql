-- SPDX-License-Identifier: Apache-2.0
-- Counts anew what accounts with a limit have, those whose count is the oldest first and a minute old; then those whose
-- count is a minute in the future, since the database's clock went back. A count and the sum that it corrects are read
-- by one statement, and writers change both in one transaction: the difference is exact, whatever they do during this,
-- and none of them waits. It is added to a row that only this function changes.
-- Bounded: 100 accounts, and no further one after 200,000 runs or threads; reads them by indexes.
-- Returns: the number of counted accounts: call again while it is not 0.
-- Locks:   the row of each count that has the correction; skips locked ones.
create or replace function agent.count_accounts() returns integer
language plpgsql volatile security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_bitmapscan = off
set enable_hashjoin = off set enable_mergejoin = off set plan_cache_mode = force_generic_plan
as $function$
declare
    v_now      timestamptz := agent.now();
    v_from     timestamptz;
    v_until    timestamptz;
    v_name     text;
    v_accounts uuid[];
begin
    select s.from_at, s.until_at, c.name into v_from, v_until, v_name
      from (values (timestamptz '-infinity', v_now - interval '1 minute'),
                   (v_now + interval '1 minute', timestamptz 'infinity')) s (from_at, until_at)
     cross join lateral (
            select x.name
              from agent.account_counts x
             where x.shard = -1
               and x.counted_at >= s.from_at
               and x.counted_at < s.until_at
             order by x.counted_at
             limit 1
           ) c
     order by s.from_at
     limit 1;
    if not found then
        return 0;
    end if;
    v_accounts := array(
        select c.account_id
          from agent.account_counts c
         where c.shard = -1
           and c.counted_at >= v_from
           and c.counted_at < v_until
           and c.name = v_name
         order by c.counted_at
         limit 100
           for no key update skip locked);
    v_accounts := array(
        select x.account_id
          from (
                select a.account_id, s.value, sum(s.value) over (order by a.pos) as together
                  from unnest(v_accounts) with ordinality a (account_id, pos)
                 cross join lateral (
                        select sum(c.value) as value
                          from agent.account_counts c
                         where c.account_id = a.account_id
                           and c.name = v_name
                       ) s
               ) x
         where x.together - x.value < 200000);
    update agent.account_counts c
       set value = c.value + m.value - m.stored,
           counted_at = v_now
      from agent.compare_counts(v_accounts, v_name, null) m
     where c.account_id = m.account_id
       and c.name = v_name
       and c.shard = -1;
    return cardinality(v_accounts);
end
$function$;

comment on function agent.count_accounts() is 'Counts anew what accounts with a limit have.';
