-- SPDX-License-Identifier: Apache-2.0
-- The event of a run whose data are the values of a checkpoint: streams with a checkpoint_id begin after it.
-- Returns: ok with its number, -1 for none: the run has not written the checkpoint, its stream modes do not
--          include values, or retention has dropped its events; run_not_found.
-- Locks:   none.
create or replace function agent.find_checkpoint_event(
    p_deployment_id uuid,
    p_thread_id uuid,
    p_run_id uuid,
    p_checkpoint_id uuid,
    out code text,
    out body text
)
language plpgsql stable security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
as $function$
declare
    v_bucket date;
begin
    select 'ok', r.events_bucket
      into code, v_bucket
      from agent.find_run(p_deployment_id, p_thread_id, p_run_id) r;
    if not found then
        code := 'run_not_found';
        return;
    end if;
    body := coalesce((
        select max(e.seq)
          from agent.run_events e
         where e.deployment_id = p_deployment_id
           and e.bucket = v_bucket
           and e.run_id = p_run_id
           and e.checkpoint_id = p_checkpoint_id
           and e.data is null), -1);
end
$function$;

comment on function agent.find_checkpoint_event(uuid, uuid, uuid, uuid) is
    'The event of a run whose data are the values of a checkpoint.';
