-- SPDX-License-Identifier: Apache-2.0
-- Deletes the record, the checkpoints, their values that no other checkpoint contains, and the events of a run:
-- agent.deletion_bytes() of both; agent.sweep_items and agent.sweep_events delete the others later. A checkpoint
-- of another run whose parent is deleted is attached to the nearest remaining ancestor, which inherits the elements
-- that it contains. The cost depends on what the run did, not on the length of the thread.
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
    v_bucket     date;
    v_head       uuid;
    v_bytes      bigint;
    v_namespaces text[];
    v_ids        uuid[];
    v_ancestors  uuid[];
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

    -- A checkpoint has one parent: no cycle can be reached from one with a parent of another run.
    with recursive down as (
        select c.checkpoint_ns, c.checkpoint_id, coalesce(c.parent_checkpoint_id, c.thread_id) as ancestor_id
          from agent.checkpoints c
         where c.run_id = p_run_id
           and uuid_hash_extended(c.thread_id, 0) = uuid_hash_extended(p_thread_id, 0)
           and c.deployment_id is not distinct from p_deployment_id
           and c.thread_id is not distinct from p_thread_id
           and (
                select x.run_id
                  from agent.checkpoints x
                 where x.deployment_id = p_deployment_id
                   and x.thread_id = p_thread_id
                   and x.checkpoint_ns = c.checkpoint_ns
                   and x.checkpoint_id = c.parent_checkpoint_id) is distinct from p_run_id
        union all
        select down.checkpoint_ns, c.checkpoint_id, down.ancestor_id
          from down
         cross join lateral agent.find_children(
                p_deployment_id, p_thread_id, down.checkpoint_ns, down.checkpoint_id) c
         where c.run_id is not distinct from p_run_id
    )
    select array_agg(d.checkpoint_ns), array_agg(d.checkpoint_id), array_agg(d.ancestor_id)
      into v_namespaces, v_ids, v_ancestors
      from down d;

    perform agent.release_items(p_deployment_id, p_thread_id, p_run_id, v_namespaces, v_ids, v_ancestors);
    delete from agent.checkpoints c
     where c.run_id = p_run_id
       and uuid_hash_extended(c.thread_id, 0) = uuid_hash_extended(p_thread_id, 0)
       and c.deployment_id is not distinct from p_deployment_id
       and c.thread_id is not distinct from p_thread_id;
    v_bytes := agent.delete_items(p_deployment_id, p_thread_id, agent.deletion_bytes());

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
