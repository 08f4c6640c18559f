-- SPDX-License-Identifier: Apache-2.0
-- Whether a run has pending writes on a checkpoint of the root graph.
-- Returns: true or false.
-- Locks:   none.
create or replace function agent.has_written(
    p_deployment_id uuid,
    p_thread_id uuid,
    p_run_id uuid,
    p_checkpoint_id uuid
) returns boolean
language plpgsql stable security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
as $function$
begin
    return exists (
        select from agent.checkpoint_writes w
         where w.deployment_id = p_deployment_id
           and w.thread_id = p_thread_id
           and w.checkpoint_ns = ''
           and w.checkpoint_id = p_checkpoint_id
           and w.run_id = p_run_id);
end
$function$;

comment on function agent.has_written(uuid, uuid, uuid, uuid) is
    'Whether a run has pending writes on a checkpoint.';
