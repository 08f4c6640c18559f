-- SPDX-License-Identifier: Apache-2.0
-- Inserts the thread that a run creates (if_not_exists). p_ttl: as in agent.create_run.
-- Returns: true; false when another transaction has inserted it first.
-- Locks:   the new row; waits for another transaction that inserts it.
create or replace function agent.insert_thread(p_deployment_id uuid, p_thread_id uuid, p_ttl interval) returns boolean
language plpgsql volatile security invoker
set search_path = '' set jit = off set plan_cache_mode = force_generic_plan
as $function$
begin
    insert into agent.threads (deployment_id, thread_id, ttl, created_at, updated_at)
    values (p_deployment_id, p_thread_id, p_ttl, agent.now(), agent.now())
        on conflict (deployment_id, thread_id) do nothing;
    return found;
end
$function$;

comment on function agent.insert_thread(uuid, uuid, interval) is 'Inserts the thread that a run creates.';
