-- SPDX-License-Identifier: Apache-2.0
-- Deletes checkpoints of a deleted run, or its snapshots, up to p_bytes: each counts 6,000 bytes, the length of its
-- namespace, 500 for each channel, its stored size, and 4,000 for each child except the first one (agent.discard_rows).
-- A checkpoint whose children do not fit into a tenth of p_bytes is deleted last: before that its children are attached
-- to its parent, in each call as many as fit (agent.attach_children).
-- Returns: the unused part of p_bytes; 0 or less when some may be left.
-- Locks:   the caller holds the thread.
create or replace function agent.discard_checkpoints(
    p_deployment_id uuid,
    p_thread_id uuid,
    p_run_id uuid,
    p_is_snapshot boolean,
    p_bytes bigint
) returns bigint
language plpgsql volatile security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_hashjoin = off
set enable_mergejoin = off
set plan_cache_mode = force_generic_plan
as $function$
declare
    c_child_bytes constant integer := 4000;
    v_most       bigint := 1 + p_bytes / (10 * c_child_bytes);
    v_left       bigint := p_bytes;
    v_row        record;
    v_wide       record;
    v_has_wide   boolean := false;
    v_children   bigint;
    v_rows       tid[] := '{}';
    v_namespaces text[] := '{}';
    v_ids        uuid[] := '{}';
    v_parents    uuid[] := '{}';
begin
    for v_row in
        select c.row_id, c.checkpoint_ns, c.checkpoint_id, c.parent_checkpoint_id,
               6000 + octet_length(c.checkpoint_ns) + 500 * c.channels + c.bytes as bytes
          from agent.find_run_checkpoints(p_deployment_id, p_thread_id, p_run_id) c
         where c.is_snapshot = p_is_snapshot
    loop
        exit when v_left <= 0;
        select count(*) into v_children
          from (
                select from agent.find_children(
                       p_deployment_id, p_thread_id, p_is_snapshot, v_row.checkpoint_ns, v_row.checkpoint_id)
                 limit v_most + 1
               ) x;
        if v_children > v_most then
            if not v_has_wide then
                v_wide := v_row;
                v_has_wide := true;
            end if;
            v_left := v_left - 6000;
            continue;
        end if;
        v_left := v_left - v_row.bytes - c_child_bytes * greatest(v_children - 1, 0);
        v_rows := v_rows || v_row.row_id;
        v_namespaces := v_namespaces || v_row.checkpoint_ns;
        v_ids := v_ids || v_row.checkpoint_id;
        v_parents := v_parents || v_row.parent_checkpoint_id;
    end loop;
    if v_has_wide then
        if v_rows = '{}' then
            perform agent.attach_children(
                p_deployment_id, p_thread_id, p_is_snapshot, p_run_id, v_wide.checkpoint_ns, v_wide.checkpoint_id,
                v_wide.parent_checkpoint_id, 1 + p_bytes / c_child_bytes);
        end if;
        v_left := 0;
    end if;
    if v_rows = '{}' then
        return v_left;
    end if;

    perform agent.discard_rows(
        p_deployment_id, p_thread_id, p_is_snapshot, v_rows, v_namespaces, v_ids, v_parents, exists (
            select from agent.run_sweeps s
             where s.deployment_id = p_deployment_id
               and s.thread_id = p_thread_id
               and s.run_id = p_run_id
               and s.is_attaching));
    return v_left;
end
$function$;

comment on function agent.discard_checkpoints(uuid, uuid, uuid, boolean, bigint) is
    'Deletes checkpoints or snapshots of a deleted run.';
