-- SPDX-License-Identifier: Apache-2.0
-- The thread of a run, for paths that name the run alone.
-- Returns: ok with the thread's id; run_not_found.
-- Locks:   none.
create or replace function agent.find_run_thread(
    p_deployment_id uuid,
    p_run_id uuid,
    out code text,
    out body text
)
language plpgsql stable security invoker
set search_path = '' set jit = off set enable_seqscan = off
set plan_cache_mode = force_generic_plan
as $function$
begin
    select 'ok', r.thread_id
      into code, body
      from agent.runs r
     where r.run_id = p_run_id
       and r.deployment_id is not distinct from p_deployment_id
       and not exists (
            select from agent.threads t
             where t.deployment_id = r.deployment_id
               and t.thread_id = r.thread_id
               and t.is_deleted
            offset 0);
    if not found then
        code := 'run_not_found';
    end if;
end
$function$;

comment on function agent.find_run_thread(uuid, uuid) is 'The thread of a run.';
