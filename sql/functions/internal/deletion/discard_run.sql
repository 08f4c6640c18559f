-- SPDX-License-Identifier: Apache-2.0
-- Deletes a run: its record, its checkpoints, snapshots and writes, the elements that only they contain, and its
-- events.
-- p_bytes: the most to delete here; all runs of a transaction share agent.deletion_bytes(). The rest is hidden from now
-- on, and agent.sweep_state and agent.sweep_events delete it later, with the blobs that have lost their last use. The
-- cost depends on what the run did, not on the length of the thread.
-- Returns: nothing. The caller moves the head of the thread when it is a checkpoint of the run.
-- Locks:   the caller holds the thread; takes the record.
create or replace function agent.discard_run(
    p_deployment_id uuid,
    p_thread_id uuid,
    p_run_id uuid,
    p_bytes bigint
) returns void
language plpgsql volatile security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_hashjoin = off
set enable_mergejoin = off
set plan_cache_mode = force_generic_plan
as $function$
declare
    v_bucket date;
    v_left   bigint;
begin
    v_left := agent.delete_run_state(p_deployment_id, p_thread_id, p_run_id, p_bytes);
    if v_left > 0 then
        v_left := agent.delete_writes(p_deployment_id, p_thread_id, null, v_left);
    end if;
    if v_left > 0 then
        v_left := agent.delete_items(p_deployment_id, p_thread_id, v_left);
    end if;

    delete from agent.runs r
     where r.run_id = p_run_id
       and r.deployment_id is not distinct from p_deployment_id
    returning r.events_bucket into v_bucket;
    perform agent.delete_events(p_deployment_id, v_bucket, p_run_id, v_left);
end
$function$;

comment on function agent.discard_run(uuid, uuid, uuid, bigint) is
    'Deletes the record, events and checkpoints of a run.';
