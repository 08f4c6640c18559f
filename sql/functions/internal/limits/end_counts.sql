-- SPDX-License-Identifier: Apache-2.0
-- Deletes counts that have ended, those of what no longer has a limit (agent.count_accounts): 100 at most.
-- Returns: how many were deleted; those of which writers hold rows stay, for later calls.
-- Locks:   those of agent.delete_count.
create or replace function agent.end_counts() returns integer
language plpgsql volatile security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
as $function$
declare
    c_most  constant integer := 100;
    v_count record;
    v_ended integer := 0;
begin
    for v_count in
        select c.account_id, c.name
          from agent.account_counts c
         where c.shard = -1
           and c.counted_at = 'infinity'
         limit c_most
    loop
        if agent.delete_count(v_count.account_id, v_count.name) then
            v_ended := v_ended + 1;
        end if;
    end loop;
    return v_ended;
end
$function$;

comment on function agent.end_counts() is 'Deletes counts of what no longer has a limit.';
