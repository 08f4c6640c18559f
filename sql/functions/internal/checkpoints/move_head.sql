-- SPDX-License-Identifier: Apache-2.0
-- Sets the head of a thread: a checkpoint, or none.
-- Returns: nothing.
-- Locks:   the caller holds the thread.
create or replace function agent.move_head(
    p_deployment_id uuid,
    p_thread_id uuid,
    p_checkpoint_id uuid
) returns void
language plpgsql volatile security invoker
set search_path = '' set jit = off set enable_seqscan = off
set plan_cache_mode = force_generic_plan
as $function$
declare
    v_now timestamptz := agent.now();
begin
    update agent.threads t
       set head_checkpoint_id = c.checkpoint_id,
           head_run_id = c.run_id,
           head_has_next = coalesce(json_array_length(c.next) > 0, false),
           state_updated_at = v_now,
           updated_at = v_now
      from (select) one
      left join agent.checkpoints c
        on c.deployment_id = p_deployment_id
       and c.thread_id = p_thread_id
       and c.checkpoint_ns = ''
       and c.checkpoint_id = p_checkpoint_id
     where t.deployment_id = p_deployment_id
       and t.thread_id = p_thread_id;
end
$function$;

comment on function agent.move_head(uuid, uuid, uuid) is 'Sets the head of a thread.';
