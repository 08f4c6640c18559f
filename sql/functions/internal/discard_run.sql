-- SPDX-License-Identifier: Apache-2.0
-- Deletes the record, the checkpoints and up to agent.deletion_bytes() of events of a run. agent.sweep_events
-- deletes the other events later, agent.sweep_blobs the values that are no longer referenced. A checkpoint of
-- another run whose parent is deleted is attached to the nearest remaining ancestor.
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
begin
    select agent.skip_checkpoints(p_deployment_id, p_thread_id, p_run_id, t.head_checkpoint_id)
      into v_head
      from agent.threads t
     where t.deployment_id = p_deployment_id
       and t.thread_id = p_thread_id;

    with recursive up as (
        select child.checkpoint_id as child_id, parent.parent_checkpoint_id as checkpoint_id
          from agent.checkpoints child
          join agent.checkpoints parent
            on parent.deployment_id = child.deployment_id
           and parent.thread_id = child.thread_id
           and parent.checkpoint_id = child.parent_checkpoint_id
         where child.deployment_id = p_deployment_id
           and child.thread_id = p_thread_id
           and child.run_id <> p_run_id
           and parent.run_id = p_run_id
        -- Not "union all": a runner may send a checkpoint that is its own ancestor.
        union
        select up.child_id, c.parent_checkpoint_id
          from up
          join agent.checkpoints c
            on c.deployment_id = p_deployment_id
           and c.thread_id = p_thread_id
           and c.checkpoint_id = up.checkpoint_id
         where c.run_id = p_run_id
    )
    update agent.checkpoints child
       set parent_checkpoint_id = up.checkpoint_id
      from up
     where child.deployment_id = p_deployment_id
       and child.thread_id = p_thread_id
       and child.checkpoint_id = up.child_id
       and not exists (
            select from agent.checkpoints c
             where c.deployment_id = p_deployment_id
               and c.thread_id = p_thread_id
               and c.checkpoint_id = up.checkpoint_id
               and c.run_id = p_run_id);

    delete from agent.checkpoints c
     where c.deployment_id = p_deployment_id
       and c.thread_id = p_thread_id
       and c.run_id = p_run_id;
    -- Finding unreferenced values takes a comparison with all remaining checkpoints.
    if found then
        insert into agent.blob_sweeps (deployment_id, thread_id, due_at)
        values (p_deployment_id, p_thread_id, agent.now())
            on conflict (deployment_id, thread_id) do nothing;
    end if;

    delete from agent.runs r
     where r.run_id = p_run_id
       and r.deployment_id is not distinct from p_deployment_id
    returning r.events_bucket into v_bucket;
    perform agent.delete_events(p_deployment_id, v_bucket, p_run_id, agent.deletion_bytes());
    return v_head;
end
$function$;

comment on function agent.discard_run(uuid, uuid, uuid) is
    'Deletes the record, events and checkpoints of a run.';
