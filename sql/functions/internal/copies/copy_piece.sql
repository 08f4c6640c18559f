-- SPDX-License-Identifier: Apache-2.0
-- Copies the next piece of a thread: checkpoints, then snapshots, then the elements and the blobs that they contain. Up
-- to p_bytes, as these functions count them.
-- Returns: left_bytes: as of agent.copy_history; stored_bytes: what the rows of the copy take, without indexes,
--          by table as agent.add_stored_bytes has them.
-- Locks:   the caller holds the row of the copy.
create or replace function agent.copy_piece(
    p_copy agent.thread_copies,
    p_bytes bigint,
    out left_bytes bigint,
    out stored_bytes bigint[]
)
language plpgsql volatile security invoker
set search_path = '' set jit = off set enable_seqscan = off
set plan_cache_mode = force_generic_plan
as $function$
declare
    v_piece record;
begin
    left_bytes := p_bytes;
    stored_bytes := '{0,0,0,0,0,0}';
    if p_copy.checkpoint_ns is not null then
        v_piece := agent.copy_history(p_copy, false, left_bytes);
        left_bytes := v_piece.left_bytes;
        stored_bytes[1] := v_piece.stored_bytes;
    end if;
    if left_bytes > 0 and p_copy.snapshot_ns is not null then
        v_piece := agent.copy_history(p_copy, true, left_bytes);
        left_bytes := v_piece.left_bytes;
        stored_bytes[2] := v_piece.stored_bytes;
        stored_bytes[3] := v_piece.write_bytes;
    end if;
    if left_bytes > 0 then
        v_piece := agent.copy_items(p_copy, left_bytes);
        left_bytes := v_piece.left_bytes;
        stored_bytes[4] := v_piece.stored_bytes;
    end if;
    if left_bytes > 0 then
        v_piece := agent.copy_blobs(p_copy, left_bytes);
        left_bytes := v_piece.left_bytes;
        stored_bytes[5] := v_piece.stored_bytes;
    end if;
end
$function$;

comment on function agent.copy_piece(agent.thread_copies, bigint) is 'Copies the next piece of a thread.';
