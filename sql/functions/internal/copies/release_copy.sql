-- SPDX-License-Identifier: Apache-2.0
-- Gives up a copy that its request begins again, with another id: it no longer counts as a thread, and leaves its place
-- to that one. agent.sweep_copies then deletes it.
-- Returns: nothing.
-- Locks:   the caller holds the row of the copy; takes one row of the count of an account with a limit.
create or replace function agent.release_copy(p_copy agent.thread_copies) returns void
language plpgsql volatile security invoker
set search_path = '' set jit = off set enable_seqscan = off
set plan_cache_mode = force_generic_plan
as $function$
begin
    update agent.thread_copies c
       set expires_at = '-infinity'
     where c.deployment_id = p_copy.deployment_id
       and c.thread_id = p_copy.thread_id;
    if exists (select from agent.account_counts) then
        perform agent.change_count(p_copy.deployment_id, 'threads', -1);
    end if;
end
$function$;

comment on function agent.release_copy(agent.thread_copies) is 'Gives up a copy that its request begins again.';
