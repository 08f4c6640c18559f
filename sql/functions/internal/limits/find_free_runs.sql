-- SPDX-License-Identifier: Apache-2.0
-- How many more runs the accounts of pools may execute, for a claim, which asks before it locks a run: the backlog of
-- an account at its limit costs nothing. Claims of two hosts at the same moment may exceed a limit, each by the runs
-- that it takes. p_accounts: one element each per pool.
-- Returns: free, held: one element each per pool. held: why no run of the account may begin: closed, also for one that
--          does not exist; full, for one that has stored as many bytes as it may: its runs would end in this error, so
--          they wait until it has deleted something; else null. free: 0 for an account that is held, null for one
--          without a limit. Both are null where no account is limited or held.
-- Locks:   the rows of new counts.
create or replace function agent.find_free_runs(p_accounts uuid[], out free bigint[], out held text[])
language plpgsql volatile security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off
set enable_mergejoin = off set plan_cache_mode = force_generic_plan
as $function$
declare
    v_is_limited boolean;
    v_is_stored  boolean;
    v_uncounted  uuid[];
begin
    select exists (select from agent.account_limits l where l.name = 'running_runs' and l.value is not null),
           exists (select from agent.account_limits l where l.name = 'stored_bytes' and l.value is not null)
      into v_is_limited, v_is_stored;
    -- Most servers have no limits, and serve open accounts only.
    if not v_is_limited and not v_is_stored and not exists (
            select
              from unnest(p_accounts) p (id)
             where not exists (select from agent.accounts a where a.account_id = p.id and a.closed_at is null))
    then
        return;
    end if;
    -- Once more after new counts. Each account is looked up once, however many pools it has.
    for v_attempt in 1..2 loop
        with found as materialized (
            select g.id, g.pools, a.account_id is not null as is_open,
                   v_is_stored and agent.find_limit(g.id, 'stored_bytes') <= coalesce((
                       select m.bytes
                         from agent.account_measures m
                        where m.account_id = g.id
                   ), 0) as is_full,
                   case when v_is_limited then agent.find_limit(g.id, 'running_runs') end as most,
                   case when v_is_limited then coalesce((
                       select sum(c.value)::bigint
                         from agent.account_counts c
                        where c.account_id = g.id
                          and c.name = 'running_runs'
                       having max(c.counted_at) < 'infinity'
                   ), case when v_attempt = 2 then (
                       -- Another transaction holds the account (agent.read_count), or it has no leased run.
                       select u.value from agent.count_used(array[g.id], 'running_runs', null) u
                   ) end) end as count
              from (
                    select p.id, array_agg(p.pool) as pools
                      from unnest(p_accounts) with ordinality p (id, pool)
                     group by p.id
                   ) g
              left join agent.accounts a on a.account_id = g.id and a.closed_at is null
        )
        select array_agg(case
                   when not f.is_open or f.is_full then 0
                   when f.most is not null then greatest(f.most - coalesce(f.count, 0), 0)
               end order by p.pool),
               array_agg(case when not f.is_open then 'closed' when f.is_full then 'full' end order by p.pool),
               array_agg(distinct f.id) filter (where f.is_open and f.most is not null and f.count is null)
          into free, held, v_uncounted
          from found f
         cross join lateral unnest(f.pools) p (pool);
        exit when v_uncounted is null or v_attempt = 2;
        perform agent.begin_counts(v_uncounted, 'running_runs');
    end loop;
    if not v_is_limited and array_remove(held, null) = '{}' then
        free := null;
        held := null;
    end if;
end
$function$;

comment on function agent.find_free_runs(uuid[]) is 'How many more runs the accounts of pools may execute.';
