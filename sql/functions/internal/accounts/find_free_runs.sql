-- SPDX-License-Identifier: Apache-2.0
-- How many more runs the accounts of pools may execute, for a claim. p_accounts: one element each per pool.
-- Returns: one element each per pool, null for an account without a limit; null: none has one.
-- Locks:   the rows of a new count.
create or replace function agent.find_free_runs(p_accounts uuid[]) returns bigint[]
language plpgsql volatile security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
set plan_cache_mode = force_generic_plan
as $function$
declare
    v_accounts uuid[];
    v_free     bigint[];
    v_limit    bigint;
begin
    if not exists (select from agent.account_limits l where l.name = 'running_runs') then
        return null;
    end if;
    v_accounts := array(select distinct a.id from unnest(p_accounts) a (id) order by 1);
    for i in 1 .. cardinality(v_accounts)
    loop
        v_limit := agent.find_limit(v_accounts[i], 'running_runs');
        v_free[i] := case when v_limit is not null then
            greatest(v_limit - agent.read_count(v_accounts[i], 'running_runs'), 0) end;
    end loop;
    return array(
        select v_free[array_position(v_accounts, a.id)]
          from unnest(p_accounts) with ordinality a (id, pool)
         order by a.pool);
end
$function$;

comment on function agent.find_free_runs(uuid[]) is 'How many more runs the accounts of pools may execute.';
