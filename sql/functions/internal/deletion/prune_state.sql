-- SPDX-License-Identifier: Apache-2.0
-- Deletes the checkpoints of a thread with their tasks, or its snapshots, except those that agent.prune_thread keeps.
-- Walks from the last namespace to the first, in each from the newest to the oldest, up to p_bytes: each one examined
-- counts 2,000 bytes, each one deleted as for agent.discard_checkpoints, its tasks as for agent.delete_tasks.
-- It also keeps one with a child of a smaller id, or with more children than fit into a tenth of a deletion. (The ids
-- of a library only grow, so the children of a checkpoint are normally examined before it.)
-- p_place: the position at which to begin; null for the beginning. {"ns", "id": the next one, "seen": the namespace of
-- the one before, "need": the next one to keep in that namespace, "open": the channels whose value was not found yet}.
-- p_head_id: the checkpoint or snapshot of the root graph to keep; null for the newest one.
-- Returns: place: the position at which to continue, null at the end; bytes_left: the unused part of p_bytes.
-- Locks:   the caller holds the thread.
create or replace function agent.prune_state(
    p_deployment_id uuid,
    p_thread_id uuid,
    p_is_snapshot boolean,
    p_head_id uuid,
    p_place jsonb,
    p_bytes bigint,
    out place jsonb,
    out bytes_left bigint
)
language plpgsql volatile security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_bitmapscan = off
set enable_hashjoin = off set enable_mergejoin = off set enable_sort = off set plan_cache_mode = force_generic_plan
as $function$
declare
    v_most       bigint := 1 + agent.deletion_bytes() / 40000;
    v_seen       text := p_place ->> 'seen';
    v_need       uuid := p_place ->> 'need';
    v_open       text[] := case when p_place ? 'open' then array(
        select n.name
          from jsonb_array_elements_text(p_place -> 'open') n (name)) end;
    v_row        record;
    v_task       record;
    v_children   bigint;
    v_is_ahead   boolean;
    v_tasks      tid[] := '{}';
    v_rows       tid[] := '{}';
    v_namespaces text[] := '{}';
    v_ids        uuid[] := '{}';
    v_parents    uuid[] := '{}';
begin
    bytes_left := p_bytes;
    for v_row in
        select * from agent.find_earlier(
            p_deployment_id, p_thread_id, p_is_snapshot, p_place ->> 'ns', (p_place ->> 'id')::uuid)
    loop
        if bytes_left <= 0 then
            place := jsonb_build_object('ns', v_row.checkpoint_ns, 'id', v_row.checkpoint_id);
            exit;
        end if;
        bytes_left := bytes_left - 2000;
        if v_seen is distinct from v_row.checkpoint_ns then
            v_seen := v_row.checkpoint_ns;
            v_need := coalesce(case when v_seen = '' then p_head_id end, v_row.checkpoint_id);
            v_open := null;
        end if;
        if v_row.checkpoint_id = v_need then
            bytes_left := bytes_left - 500 * cardinality(v_row.channels);
            v_open := array(
                select n.name
                  from unnest(coalesce(v_open, agent.find_delta_channels(v_row.checkpoint, v_row.metadata))) n (name)
                 where n.name <> all (array(
                        select c.name
                          from unnest(v_row.channels) c
                         where c.content is null)));
            v_need := case when v_open <> '{}' then v_row.parent_checkpoint_id end;
            continue;
        end if;
        select count(*), coalesce(bool_or(x.checkpoint_id < v_row.checkpoint_id), false) into v_children, v_is_ahead
          from (
                select c.checkpoint_id
                  from agent.find_children(
                           p_deployment_id, p_thread_id, p_is_snapshot, v_row.checkpoint_ns, v_row.checkpoint_id) c
                 where c.checkpoint_id <> all (v_ids)
                 limit v_most + 1
               ) x;
        continue when v_is_ahead or v_children > v_most;
        for v_task in
            select x.ctid as row_id, 2000 + pg_column_size(x.task) as bytes
              from agent.checkpoint_tasks x
             where not p_is_snapshot
               and x.deployment_id = p_deployment_id
               and x.thread_id = p_thread_id
               and x.checkpoint_id = v_row.checkpoint_id
               and x.checkpoint_ns = v_row.checkpoint_ns
        loop
            exit when bytes_left <= 0;
            v_tasks := v_tasks || v_task.row_id;
            bytes_left := bytes_left - v_task.bytes;
        end loop;
        if bytes_left <= 0 and v_task is not null then
            place := jsonb_build_object('ns', v_row.checkpoint_ns, 'id', v_row.checkpoint_id);
            exit;
        end if;
        bytes_left := bytes_left - 4000 - octet_length(v_row.checkpoint_ns) - 500 * cardinality(v_row.channels)
            - v_row.bytes - 4000 * greatest(v_children - 1, 0);
        v_rows := v_rows || v_row.row_id;
        v_namespaces := v_namespaces || v_row.checkpoint_ns;
        v_ids := v_ids || v_row.checkpoint_id;
        v_parents := v_parents || v_row.parent_checkpoint_id;
    end loop;
    if place is not null then
        place := place || jsonb_strip_nulls(
            jsonb_build_object('seen', v_seen, 'need', v_need, 'open', v_open));
    end if;
    delete from agent.checkpoint_tasks x
     where x.ctid = any (v_tasks);
    if v_rows <> '{}' then
        perform agent.discard_rows(
            p_deployment_id, p_thread_id, p_is_snapshot, v_rows, v_namespaces, v_ids, v_parents, false);
    end if;
end
$function$;

comment on function agent.prune_state(uuid, uuid, boolean, uuid, jsonb, bigint) is
    'Deletes all but the last checkpoints of a thread.';
