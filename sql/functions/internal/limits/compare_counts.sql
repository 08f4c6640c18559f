-- SPDX-License-Identifier: Apache-2.0
-- Counts what accounts have, and reads the sums of their counts, both as the calling statement sees them.
-- Returns: a row for each account: what it has, and the sum, null without a count.
-- Locks:   none.
create or replace function agent.compare_counts(p_account_ids uuid[], p_name text)
returns table (account_id uuid, value bigint, stored bigint)
language plpgsql stable security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_bitmapscan = off
set enable_hashjoin = off set enable_mergejoin = off set plan_cache_mode = force_generic_plan
as $function$
#variable_conflict use_column
begin
    return query
        with counted as materialized (
            select m.account_id, m.value from agent.count_used(p_account_ids, p_name, null) m
        )
        select a.account_id,
               coalesce((select m.value from counted m where m.account_id = a.account_id), 0),
               (
                   select sum(c.value)::bigint
                     from agent.account_counts c
                    where c.account_id = a.account_id
                      and c.name = p_name
               )
          from unnest(p_account_ids) a (account_id);
end
$function$;

comment on function agent.compare_counts(uuid[], text) is
    'Counts of what accounts have, beside the sums of their counts.';
