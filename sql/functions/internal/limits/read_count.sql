-- SPDX-License-Identifier: Apache-2.0
-- The count of an account, which begins here if there was none. It misses transactions that have not committed:
-- several of them together may exceed a limit, each by the runs that it creates. While another transaction holds the
-- account, so that no count can begin, or a count that has ended is deleted, this call counts for itself, up to 20,000
-- (agent.begin_counts).
-- Returns: the count; 0 for an account that is closed, unless it has been counted before.
-- Locks:   the rows of a new count.
create or replace function agent.read_count(p_account_id uuid, p_name text) returns bigint
language plpgsql volatile security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
as $function$
declare
    c_most  constant integer := 20000;
    v_count bigint;
begin
    for v_attempt in 1..2 loop
        select sum(c.value) into v_count
          from agent.account_counts c
         where c.account_id = p_account_id
           and c.name = p_name
        having max(c.counted_at) < 'infinity';
        exit when v_count is not null or v_attempt = 2;
        perform agent.begin_counts(array[p_account_id], p_name);
    end loop;
    if v_count is null then
        select case
                   when p_name = 'threads'
                   then (select t.value from agent.count_next_threads(a.account_id, null, null, c_most) t)
                   else (select u.value from agent.count_used(array[a.account_id], p_name, c_most) u)
               end
          into v_count
          from agent.accounts a
         where a.account_id = p_account_id
           and a.closed_at is null;
    end if;
    return coalesce(v_count, 0);
end
$function$;

comment on function agent.read_count(uuid, text) is 'What an account has.';
