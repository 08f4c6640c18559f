-- SPDX-License-Identifier: Apache-2.0
-- Moves to row -1 of counts the values of the rows that agent.add_to_count has made for backends; the sums stay.
-- Returns: nothing.
-- Locks:   these rows, skipping locked ones; the caller holds row -1.
create or replace function agent.fold_counts(p_account_ids uuid[], p_name text) returns void
language plpgsql volatile security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
as $function$
declare
    v_rows tid[] := array(
        select c.ctid
          from agent.account_counts c
         where c.account_id = any (p_account_ids)
           and c.name = p_name
           and c.shard > 15
           for update skip locked);
begin
    if v_rows <> '{}' then
        with gone as (
            delete from agent.account_counts c
             where c.ctid = any (v_rows)
            returning c.account_id, c.value
        )
        update agent.account_counts c
           set value = c.value + g.value
          from (select x.account_id, sum(x.value)::bigint as value from gone x group by x.account_id) g
         where c.account_id = g.account_id
           and c.name = p_name
           and c.shard = -1;
    end if;
end
$function$;

comment on function agent.fold_counts(uuid[], text) is 'Moves to row -1 of counts the values of the rows of backends.';
