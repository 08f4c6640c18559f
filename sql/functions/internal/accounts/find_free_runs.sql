-- SPDX-License-Identifier: Apache-2.0
-- How many more runs the accounts of pools may execute, for a claim. p_accounts: one element each per pool.
-- Returns: one element each per pool, null for an account without a limit; null: none has one.
-- Locks:   the rows of new counts.
create or replace function agent.find_free_runs(p_accounts uuid[]) returns bigint[]
language plpgsql volatile security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off
set enable_mergejoin = off set plan_cache_mode = force_generic_plan
as $function$
declare
    v_accounts uuid[];
    v_limits   bigint[];
    v_counts   bigint[];
begin
    if not exists (select from agent.account_limits l where l.name = 'running_runs' and l.value is not null) then
        return null;
    end if;
    v_accounts := array(select distinct a.id from unnest(p_accounts) a (id) order by 1);
    v_limits := array(
        select agent.find_limit(a.id, 'running_runs')
          from unnest(v_accounts) with ordinality a (id, pos)
         order by a.pos);
    -- Twice at most: once more after new counts.
    loop
        v_counts := array(
            select (
                       select sum(c.value)
                         from agent.account_counts c
                        where c.account_id = a.id
                          and c.name = 'running_runs'
                   )
              from unnest(v_accounts) with ordinality a (id, pos)
             order by a.pos);
        exit when not exists (
            select
              from unnest(v_limits, v_counts) as x (most, count)
             where x.most is not null
               and x.count is null);
        perform agent.begin_counts(array(
            select x.id
              from unnest(v_accounts, v_limits, v_counts) as x (id, most, count)
             where x.most is not null
               and x.count is null), 'running_runs');
    end loop;
    return array(
        select case when v_limits[x.i] is not null then greatest(v_limits[x.i] - v_counts[x.i], 0) end
          from (
                select array_position(v_accounts, a.id) as i, a.pool
                  from unnest(p_accounts) with ordinality a (id, pool)
               ) x
         order by x.pool);
end
$function$;

comment on function agent.find_free_runs(uuid[]) is 'How many more runs the accounts of pools may execute.';
