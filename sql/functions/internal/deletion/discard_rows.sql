-- SPDX-License-Identifier: Apache-2.0
-- Deletes checkpoints of a thread, or snapshots. Their remaining children are attached to the nearest remaining
-- ancestor, which inherits the elements that they contain (agent.release_items). Deleted snapshots with writes are
-- recorded in agent.write_sweeps: agent.delete_writes deletes the writes of the time before this deletion.
-- p_rows, p_namespaces, p_ids, p_parents: the row ids (ctid) and the keys of the rows. p_is_attaching: as in
-- agent.release_items.
-- Returns: nothing.
-- Locks:   the caller holds the thread.
create or replace function agent.discard_rows(
    p_deployment_id uuid,
    p_thread_id uuid,
    p_is_snapshot boolean,
    p_rows tid[],
    p_namespaces text[],
    p_ids uuid[],
    p_parents uuid[],
    p_is_attaching boolean
) returns void
language plpgsql volatile security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_hashjoin = off
set enable_mergejoin = off
set plan_cache_mode = force_generic_plan
as $function$
declare
    v_ancestors uuid[];
    v_ancestor  uuid;
    v_positions jsonb;
    v_path      integer[];
    v_at        integer;
begin
    -- Found by id in a map: a search for each parent would be quadratic.
    select jsonb_object_agg(i.checkpoint_id || i.checkpoint_ns, i.pos) into v_positions
      from unnest(p_ids, p_namespaces) with ordinality i (checkpoint_id, checkpoint_ns, pos);
    v_ancestors := array_fill(null::uuid, array[cardinality(p_ids)]);
    for v_first in 1 .. cardinality(p_ids)
    loop
        v_at := v_first;
        v_path := '{}';
        loop
            v_ancestor := v_ancestors[v_at];
            exit when v_ancestor is not null;
            v_path := v_path || v_at;
            -- Provisional, so that the walk ends: a runner may send a checkpoint that is its own ancestor.
            v_ancestors[v_at] := p_thread_id;
            v_ancestor := coalesce(p_parents[v_at], p_thread_id);
            v_at := v_positions ->> (p_parents[v_at] || p_namespaces[v_at]);
            exit when v_at is null;
        end loop;
        foreach v_at in array v_path
        loop
            v_ancestors[v_at] := v_ancestor;
        end loop;
    end loop;
    perform agent.release_items(
        p_deployment_id, p_thread_id, p_is_snapshot, v_positions, p_namespaces, p_ids, v_ancestors, p_is_attaching);

    if p_is_snapshot then
        insert into agent.write_sweeps (deployment_id, thread_id, checkpoint_ns, checkpoint_id, deletions)
        select p_deployment_id, p_thread_id, i.checkpoint_ns, i.checkpoint_id, (
                   select t.state_deletions
                     from agent.threads t
                    where t.deployment_id = p_deployment_id
                      and t.thread_id = p_thread_id)
          from unnest(p_namespaces, p_ids) i (checkpoint_ns, checkpoint_id)
         where exists (
                select from agent.checkpoint_writes w
                 where w.deployment_id = p_deployment_id
                   and w.thread_id = p_thread_id
                   and w.checkpoint_ns = i.checkpoint_ns
                   and w.checkpoint_id = i.checkpoint_id
                offset 0)
            on conflict (deployment_id, thread_id, checkpoint_ns, checkpoint_id) do update
           set deletions = excluded.deletions;
        delete from agent.checkpoint_snapshots c
         where c.ctid = any (p_rows);
    else
        delete from agent.checkpoints c
         where c.ctid = any (p_rows);
    end if;
end
$function$;

comment on function agent.discard_rows(uuid, uuid, boolean, tid[], text[], uuid[], uuid[], boolean) is
    'Deletes checkpoints or snapshots of a thread.';
