-- SPDX-License-Identifier: Apache-2.0
-- Deletes the record, the checkpoints, snapshots and writes, the elements of their values that no others contain, and
-- the events of a run: agent.deletion_bytes() of writes, elements and events; agent.sweep_items and agent.sweep_events
-- delete the rest later, and blobs that no longer have a use. The cost depends on what the run did, not on the length
-- of the thread.
-- Returns: the thread's head, or its nearest ancestor that another run saved; null for none.
-- Locks:   the caller holds the thread; takes the record.
create or replace function agent.discard_run(
    p_deployment_id uuid,
    p_thread_id uuid,
    p_run_id uuid
) returns uuid
language plpgsql volatile security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_hashjoin = off
set enable_mergejoin = off
set plan_cache_mode = force_generic_plan
as $function$
declare
    v_bucket date;
    v_head   uuid;
    v_bytes  bigint;
begin
    select agent.skip_checkpoints(p_deployment_id, p_thread_id, p_run_id, t.head_checkpoint_id)
      into v_head
      from agent.threads t
     where t.deployment_id = p_deployment_id
       and t.thread_id = p_thread_id;

    update agent.threads t
       set state_deletions = t.state_deletions + 1
     where t.deployment_id = p_deployment_id
       and t.thread_id = p_thread_id;
    perform agent.discard_checkpoints(p_deployment_id, p_thread_id, p_run_id, k.is_snapshot)
       from (values (false), (true)) k (is_snapshot);
    v_bytes := agent.delete_writes(p_deployment_id, p_thread_id, agent.deletion_bytes());
    v_bytes := agent.delete_items(p_deployment_id, p_thread_id, v_bytes);

    delete from agent.runs r
     where r.run_id = p_run_id
       and r.deployment_id is not distinct from p_deployment_id
    returning r.events_bucket into v_bucket;
    perform agent.delete_events(p_deployment_id, v_bucket, p_run_id, v_bytes);
    return v_head;
end
$function$;

comment on function agent.discard_run(uuid, uuid, uuid) is
    'Deletes the record, events and checkpoints of a run.';
