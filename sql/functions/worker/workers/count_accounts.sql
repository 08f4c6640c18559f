-- SPDX-License-Identifier: Apache-2.0
-- Counts anew what accounts with a limit have, those whose count is the oldest first and a minute old; then those whose
-- count is a minute in the future, since the database's clock went back: agent.count_account. An account that fails is
-- counted again after a minute, as if it had been counted. A count without a limit ends when its turn comes: later
-- calls delete it (agent.end_counts).
-- Bounded: 100 accounts, and no further one after 50 ms. One has a piece of 20,000 threads, or all of its unfinished
-- runs or webhooks. The leased runs of 100 accounts are counted together, unless that fails.
-- Returns: the number of accounts that had a turn: call again while it is not 0.
-- Locks:   the row of each count that has the correction, and those of agent.fold_counts and agent.end_counts; skips
--          locked ones.
create or replace function agent.count_accounts() returns integer
language plpgsql volatile security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_bitmapscan = off
set enable_hashjoin = off set enable_mergejoin = off set plan_cache_mode = force_generic_plan
as $function$
declare
    v_now      timestamptz := agent.now();
    v_from     timestamptz;
    v_before   timestamptz;
    v_until    timestamptz := clock_timestamp() + interval '50 milliseconds';
    v_name     text;
    v_accounts uuid[];
    v_account  uuid;
    v_ended    integer;
    v_counted  integer := agent.end_counts();
begin
    select s.from_at, s.until_at, c.name into v_from, v_before, v_name
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
        return v_counted;
    end if;
    v_accounts := array(
        select c.account_id
          from agent.account_counts c
         where c.shard = -1
           and c.counted_at >= v_from
           and c.counted_at < v_before
           and c.name = v_name
         order by c.counted_at
         limit 100
           for no key update skip locked);
    update agent.account_counts c
       set counted_at = 'infinity'
     where c.account_id = any (v_accounts)
       and c.name = v_name
       and c.shard = -1
       and agent.find_limit(c.account_id, v_name) is null;
    get diagnostics v_ended = row_count;
    v_counted := v_counted + v_ended;
    v_accounts := case
        when v_ended = 0 then v_accounts
        else array(select a.id from unnest(v_accounts) a (id) where agent.find_limit(a.id, v_name) is not null)
    end;
    if v_name = 'running_runs' then
        begin
            perform agent.fold_counts(v_accounts, v_name);
            update agent.account_counts c
               set value = c.value + m.value - m.stored,
                   counted_at = v_now
              from agent.compare_counts(v_accounts, v_name) m
             where c.account_id = m.account_id
               and c.name = v_name
               and c.shard = -1;
            return v_counted + cardinality(v_accounts);
        exception when others or query_canceled then
            raise warning 'agent: the count of % of accounts failed: %', v_name, sqlerrm;
            -- Below, each for itself, so that one of them does not hold up the others.
        end;
    end if;
    foreach v_account in array v_accounts
    loop
        v_counted := v_counted + 1;
        begin
            perform agent.count_account(v_account, v_name, v_now, v_until);
        exception when others or query_canceled then
            raise warning 'agent: the count of % of account % failed: %', v_name, v_account, sqlerrm;
            update agent.account_counts c
               set counted_at = v_now,
                   sum_value = 0,
                   at_deployment_id = null,
                   at_thread_id = null
             where c.account_id = v_account
               and c.name = v_name
               and c.shard = -1;
        end;
        exit when clock_timestamp() > v_until;
    end loop;
    return v_counted;
end
$function$;

comment on function agent.count_accounts() is 'Counts anew what accounts with a limit have.';
