-- SPDX-License-Identifier: Apache-2.0
-- Counts what an account has for the first time; agent.set_limits does so again within 10 s, since this count
-- misses transactions that have not committed.
-- Returns: the count.
-- Locks:   the new rows.
create or replace function agent.begin_count(p_account_id uuid, p_name text) returns bigint
language plpgsql volatile security invoker
set search_path = ''
as $function$
declare
    v_count bigint := agent.count_runs(p_account_id, p_name);
begin
    insert into agent.account_counts (account_id, name, shard, value, counted_at)
    select p_account_id, p_name, s.shard, case when s.shard = 0 then v_count else 0 end, '-infinity'
      from generate_series(0, 15) s (shard)
        on conflict (account_id, name, shard) do nothing;
    return v_count;
end
$function$;

comment on function agent.begin_count(uuid, text) is 'Counts what an account has for the first time.';
