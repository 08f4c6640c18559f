-- SPDX-License-Identifier: Apache-2.0
-- Counts what accounts have for the first time, those that are open and not counted yet: a closed account, which may
-- have been deleted, gets no rows. The counts miss transactions that have not committed and did not see them,
-- and threads beyond a million, so that a request does not wait for long;
-- agent.count_accounts corrects them within 10 s.
-- Returns: nothing.
-- Locks:   the new rows.
create or replace function agent.begin_counts(p_account_ids uuid[], p_name text) returns void
language plpgsql volatile security invoker
set search_path = '' set jit = off set plan_cache_mode = force_generic_plan
as $function$
begin
    insert into agent.account_counts (account_id, name, shard, value, counted_at)
    select m.account_id, p_name, s.shard, case when s.shard = -1 then m.value else 0 end, '-infinity'
      from agent.compare_counts(array(
               select distinct a.account_id
                 from unnest(p_account_ids) p (id)
                 join agent.accounts a on a.account_id = p.id and a.closed_at is null), p_name, 1000000) m
     cross join generate_series(-1, 15) s (shard)
     where m.stored is null
     order by m.account_id, s.shard
        on conflict (account_id, name, shard) do nothing;
end
$function$;

comment on function agent.begin_counts(uuid[], text) is 'Counts what accounts have for the first time.';
