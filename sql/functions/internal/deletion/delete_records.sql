-- SPDX-License-Identifier: Apache-2.0
-- Deletes the snapshots, writes and blobs of a thread that is being deleted, up to p_bytes, counted as by
-- agent.delete_state. Uses are not counted: all blobs go.
-- Returns: the unused part of p_bytes; 0 or less when something may be left.
-- Locks:   the caller holds the thread.
create or replace function agent.delete_records(p_deployment_id uuid, p_thread_id uuid, p_bytes bigint)
returns bigint
language plpgsql volatile security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_bitmapscan = off
set enable_sort = off set plan_cache_mode = force_generic_plan
as $function$
declare
    v_left bigint := p_bytes;
    v_row  record;
    v_last record;
begin
    for v_row in
        select s.checkpoint_ns, s.checkpoint_id,
               3000 + pg_column_size(s.channels) + pg_column_size(s.checkpoint) + pg_column_size(s.metadata) as bytes
          from agent.checkpoint_snapshots s
         where s.deployment_id = p_deployment_id
           and s.thread_id = p_thread_id
         order by s.deployment_id, s.thread_id, s.checkpoint_ns, s.checkpoint_id
    loop
        exit when v_left <= 0;
        v_left := v_left - v_row.bytes;
        v_last := v_row;
    end loop;
    if v_last is not null then
        delete from agent.checkpoint_snapshots s
         where s.deployment_id = p_deployment_id
           and s.thread_id = p_thread_id
           and (s.checkpoint_ns, s.checkpoint_id) <= (v_last.checkpoint_ns, v_last.checkpoint_id);
    end if;
    if v_left <= 0 then
        return v_left;
    end if;

    v_last := null;
    for v_row in
        select w.checkpoint_ns, w.checkpoint_id, w.task_id, w.idx, w.run_seq,
               2000 + pg_column_size(w.digests) as bytes
          from agent.checkpoint_writes w
         where w.deployment_id = p_deployment_id
           and w.thread_id = p_thread_id
         order by w.deployment_id, w.thread_id, w.checkpoint_ns, w.checkpoint_id, w.task_id, w.idx, w.run_seq
    loop
        exit when v_left <= 0;
        v_left := v_left - v_row.bytes;
        v_last := v_row;
    end loop;
    if v_last is not null then
        delete from agent.checkpoint_writes w
         where w.deployment_id = p_deployment_id
           and w.thread_id = p_thread_id
           and (w.checkpoint_ns, w.checkpoint_id, w.task_id, w.idx, w.run_seq)
               <= (v_last.checkpoint_ns, v_last.checkpoint_id, v_last.task_id, v_last.idx, v_last.run_seq);
    end if;
    if v_left <= 0 then
        return v_left;
    end if;

    delete from agent.run_sweeps s
     where s.deployment_id = p_deployment_id
       and s.thread_id = p_thread_id;
    delete from agent.write_sweeps s
     where s.deployment_id = p_deployment_id
       and s.thread_id = p_thread_id;
    v_last := null;
    for v_row in
        select b.digest, b.part, 1000 + pg_column_size(b.content) as bytes
          from agent.checkpoint_blobs b
         where b.deployment_id = p_deployment_id
           and b.thread_id = p_thread_id
         order by b.deployment_id, b.thread_id, b.digest, b.part
    loop
        exit when v_left <= 0;
        v_left := v_left - v_row.bytes;
        v_last := v_row;
    end loop;
    if v_last is not null then
        delete from agent.checkpoint_blobs b
         where b.deployment_id = p_deployment_id
           and b.thread_id = p_thread_id
           and (b.digest, b.part) <= (v_last.digest, v_last.part);
    end if;
    if v_left > 0 then
        delete from agent.blob_sweeps w
         where w.deployment_id = p_deployment_id
           and w.thread_id = p_thread_id;
    end if;
    return v_left;
end
$function$;

comment on function agent.delete_records(uuid, uuid, bigint) is
    'Deletes the snapshots, writes and blobs of a thread.';
