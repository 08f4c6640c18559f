-- SPDX-License-Identifier: Apache-2.0
-- Deletes the checkpoints of a run, or its snapshots. One of another run whose parent is deleted is attached to the
-- nearest remaining ancestor, which inherits the elements that it contains (agent.release_items). With snapshots go the
-- writes of the run, and those of other runs to these snapshots: they are noted for agent.delete_writes.
-- Returns: nothing.
-- Locks:   the caller holds the thread.
create or replace function agent.discard_checkpoints(
    p_deployment_id uuid,
    p_thread_id uuid,
    p_run_id uuid,
    p_is_snapshot boolean
) returns void
language plpgsql volatile security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_hashjoin = off
set enable_mergejoin = off
set plan_cache_mode = force_generic_plan
as $function$
declare
    v_namespaces text[];
    v_ids        uuid[];
    v_ancestors  uuid[];
begin
    -- A checkpoint has one parent: no cycle can be reached from one with a parent of another run.
    with recursive own as (
        select c.checkpoint_ns, c.checkpoint_id, c.parent_checkpoint_id
          from agent.checkpoints c
         where not p_is_snapshot
           and c.run_id = p_run_id
           and uuid_hash_extended(c.thread_id, 0) = uuid_hash_extended(p_thread_id, 0)
           and c.deployment_id is not distinct from p_deployment_id
           and c.thread_id is not distinct from p_thread_id
        union all
        select c.checkpoint_ns, c.checkpoint_id, c.parent_checkpoint_id
          from agent.checkpoint_snapshots c
         where p_is_snapshot
           and c.run_id = p_run_id
           and uuid_hash_extended(c.thread_id, 0) = uuid_hash_extended(p_thread_id, 0)
           and c.deployment_id is not distinct from p_deployment_id
           and c.thread_id is not distinct from p_thread_id
    ),
    down as (
        select o.checkpoint_ns, o.checkpoint_id, coalesce(o.parent_checkpoint_id, p_thread_id) as ancestor_id
          from own o
         where (
                select x.run_id
                  from agent.find_channels(
                           p_deployment_id, p_thread_id, p_is_snapshot, o.checkpoint_ns,
                           o.parent_checkpoint_id) x) is distinct from p_run_id
        union all
        select d.checkpoint_ns, c.checkpoint_id, d.ancestor_id
          from down d
         cross join lateral agent.find_children(
                p_deployment_id, p_thread_id, p_is_snapshot, d.checkpoint_ns, d.checkpoint_id) c
         where c.run_id is not distinct from p_run_id
    )
    select array_agg(d.checkpoint_ns), array_agg(d.checkpoint_id), array_agg(d.ancestor_id)
      into v_namespaces, v_ids, v_ancestors
      from down d;

    if v_ids is not null then
        perform agent.release_items(
            p_deployment_id, p_thread_id, p_run_id, p_is_snapshot, v_namespaces, v_ids, v_ancestors);
    end if;
    if p_is_snapshot then
        insert into agent.write_sweeps (deployment_id, thread_id, is_snapshot, checkpoint_ns, deleted_id)
        select p_deployment_id, p_thread_id, true, i.checkpoint_ns, i.checkpoint_id
          from unnest(v_namespaces, v_ids) i (checkpoint_ns, checkpoint_id)
         where exists (
                select from agent.checkpoint_writes w
                 where w.deployment_id = p_deployment_id
                   and w.thread_id = p_thread_id
                   and w.checkpoint_ns = i.checkpoint_ns
                   and w.checkpoint_id = i.checkpoint_id
                offset 0)
        union all
        select p_deployment_id, p_thread_id, false, '', p_run_id
         where exists (
                select from agent.checkpoint_writes w
                 where w.run_id = p_run_id
                   and uuid_hash_extended(w.thread_id, 0) = uuid_hash_extended(p_thread_id, 0)
                   and w.deployment_id is not distinct from p_deployment_id
                   and w.thread_id is not distinct from p_thread_id)
            on conflict do nothing;
        delete from agent.checkpoint_snapshots c
         where c.run_id = p_run_id
           and uuid_hash_extended(c.thread_id, 0) = uuid_hash_extended(p_thread_id, 0)
           and c.deployment_id is not distinct from p_deployment_id
           and c.thread_id is not distinct from p_thread_id;
    else
        delete from agent.checkpoints c
         where c.run_id = p_run_id
           and uuid_hash_extended(c.thread_id, 0) = uuid_hash_extended(p_thread_id, 0)
           and c.deployment_id is not distinct from p_deployment_id
           and c.thread_id is not distinct from p_thread_id;
    end if;
end
$function$;

comment on function agent.discard_checkpoints(uuid, uuid, uuid, boolean) is
    'Deletes the checkpoints or snapshots of a run.';
