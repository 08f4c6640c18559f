-- SPDX-License-Identifier: Apache-2.0
-- Gives up a copy of a thread that is not continued: its key has ended, its client has gone, or its server stops.
-- agent.sweep_copies deletes it at its next turn, instead of two minutes later.
-- Returns: ok, whether or not there is one.
-- Locks:   the row of the copy; one row of the count of threads of an account with limits.
create or replace function agent.abandon_copy(
    p_deployment_id uuid,
    p_copy_id uuid,
    out code text,
    out body text
)
language plpgsql volatile security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
as $function$
declare
    v_copy agent.thread_copies;
begin
    code := 'ok';
    select c.* into v_copy
      from agent.thread_copies c
     where c.deployment_id = p_deployment_id
       and c.thread_id = p_copy_id
       and c.expires_at > '-infinity'
       for update;
    if found then
        perform agent.release_copy(v_copy);
    end if;
end
$function$;

comment on function agent.abandon_copy(uuid, uuid) is 'Gives up a copy of a thread that is not continued.';
