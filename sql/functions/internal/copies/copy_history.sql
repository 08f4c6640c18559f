-- SPDX-License-Identifier: Apache-2.0
-- Copies the checkpoints of a thread into its copy, or its snapshots with their writes (p_is_snapshot), namespace by
-- namespace, each from the newest one towards the first one, and notes for agent.copy_items the elements that they
-- contain (agent.copy_ranges). Up to p_bytes, of which a namespace takes 50,000.
-- Returns: left_bytes: the unused part of p_bytes; 0 or less when something may be left; null when one is left of a
--          deleted run. stored_bytes, write_bytes: what the new rows take, and those of writes, without indexes.
-- Locks:   the caller holds the row of the copy.
create or replace function agent.copy_history(
    p_copy agent.thread_copies,
    p_is_snapshot boolean,
    p_bytes bigint,
    out left_bytes bigint,
    out stored_bytes bigint,
    out write_bytes bigint
)
language plpgsql volatile security invoker
set search_path = '' set jit = off set enable_seqscan = off set plan_cache_mode = force_generic_plan
as $function$
declare
    v_ns    text := case when p_is_snapshot then p_copy.snapshot_ns else p_copy.checkpoint_ns end;
    v_next  uuid := case when p_is_snapshot then p_copy.next_snapshot_id else p_copy.next_checkpoint_id end;
    v_found integer;
    v_piece record;
begin
    left_bytes := p_bytes;
    stored_bytes := 0;
    write_bytes := 0;
    while v_ns is not null and left_bytes > 0
    loop
        if p_is_snapshot then
            v_piece := agent.copy_snapshots(p_copy, v_ns, v_next, left_bytes);
            write_bytes := write_bytes + v_piece.write_bytes;
        else
            v_piece := agent.copy_checkpoints(p_copy, v_ns, v_next, left_bytes);
        end if;
        v_found := cardinality(v_piece.ids) - 1;
        stored_bytes := stored_bytes + v_piece.stored_bytes;
        if v_piece.is_swept then
            left_bytes := null;
            return;
        end if;
        v_next := v_piece.parents[v_found + 1];
        perform agent.copy_ranges(p_copy, p_is_snapshot, v_ns, v_piece.ids[2 :], v_piece.parents[2 :]);

        left_bytes := left_bytes - v_piece.bytes;
        -- A runner may have sent a checkpoint that is its own ancestor.
        continue when v_next is not null and v_found > 0 and v_piece.copied = v_found;

        left_bytes := left_bytes - 50000;
        select f.ns, f.newest_id into v_ns, v_next
          from agent.find_next_namespace(p_copy, p_is_snapshot, v_ns) f;
    end loop;
    update agent.thread_copies c
       set checkpoint_ns = case when p_is_snapshot then c.checkpoint_ns else v_ns end,
           next_checkpoint_id = case when p_is_snapshot then c.next_checkpoint_id else v_next end,
           snapshot_ns = case when p_is_snapshot then v_ns else c.snapshot_ns end,
           next_snapshot_id = case when p_is_snapshot then v_next else c.next_snapshot_id end
     where c.deployment_id = p_copy.deployment_id
       and c.thread_id = p_copy.thread_id;
    if v_ns is not null then
        left_bytes := least(left_bytes, 0);
    end if;
end
$function$;

comment on function agent.copy_history(agent.thread_copies, boolean, bigint) is
    'Copies the checkpoints or the snapshots of a thread into its copy.';
