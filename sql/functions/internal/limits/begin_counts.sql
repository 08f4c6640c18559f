-- SPDX-License-Identifier: Apache-2.0
-- Counts what accounts have for the first time, those that are open and not counted yet: a closed account, which may
-- have been deleted, gets no rows. The counts miss transactions that have not committed and did not see them, and what
-- is beyond 20,000, so that a request does not wait for long (of leased runs they have all): agent.count_accounts
-- begins to correct them within 10 s, and until it has, an account with more may exceed its limit. An account that
-- another transaction holds, which may begin its count, is left to it, so that neither waits (agent.add_to_count): its
-- callers then count for themselves. So is a count that is being deleted.
-- Returns: nothing.
-- Locks:   the accounts, skipping locked ones, and the new rows.
create or replace function agent.begin_counts(p_account_ids uuid[], p_name text) returns void
language plpgsql volatile security invoker
set search_path = '' set jit = off set plan_cache_mode = force_generic_plan
as $function$
declare
    c_most     constant integer := 20000;
    v_accounts constant uuid[] := array(
        select a.account_id
          from agent.accounts a
         where a.account_id = any (p_account_ids)
           and a.closed_at is null
           and not exists (
                select from agent.account_counts c
                 where c.account_id = a.account_id
                   and c.name = p_name)
         order by a.account_id
           for no key update skip locked);
begin
    insert into agent.account_counts as c (
        account_id, name, shard, value, counted_at, sum_value, at_deployment_id, at_thread_id)
    select m.account_id, p_name, s.shard, case when s.shard = -1 then m.value else 0 end, '-infinity',
           case when s.shard = -1 and m.at_thread_id is not null then m.value else 0 end,
           case when s.shard = -1 then m.at_deployment_id end, case when s.shard = -1 then m.at_thread_id end
      from (
            select a.id as account_id, t.value, t.at_deployment_id, t.at_thread_id
              from unnest(v_accounts) a (id)
             cross join lateral agent.count_next_threads(a.id, null, null, c_most) t
             where p_name = 'threads'
            union all
            select a.id, coalesce(u.value, 0), null, null
              from unnest(v_accounts) a (id)
              left join agent.count_used(v_accounts, p_name, c_most) u on u.account_id = a.id
             where p_name <> 'threads'
           ) m
     cross join generate_series(-1, 15) s (shard)
     order by m.account_id, s.shard
        on conflict (account_id, name, shard) do nothing;
end
$function$;

comment on function agent.begin_counts(uuid[], text) is 'Counts what accounts have for the first time.';
