-- SPDX-License-Identifier: Apache-2.0
-- Deletes the checkpoints, records and values of a thread that is being deleted, or of a copy that is not complete, up
-- to p_bytes: each row counts as its stored size plus 1,000 bytes, and as much for each further index of its table.
-- Returns: the unused part of p_bytes; 0 or less when something may be left.
-- Locks:   the caller holds the thread; takes its rows in agent.item_sweeps, before the elements.
create or replace function agent.delete_state(p_deployment_id uuid, p_thread_id uuid, p_bytes bigint)
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
        select c.checkpoint_ns, c.checkpoint_id,
               3000 + pg_column_size(c.channels) + pg_column_size(c.next) + pg_column_size(c.tasks)
               + pg_column_size(c.metadata) as bytes
          from agent.checkpoints c
         where c.deployment_id = p_deployment_id
           and c.thread_id = p_thread_id
         order by c.deployment_id, c.thread_id, c.checkpoint_ns, c.checkpoint_id
    loop
        exit when v_left <= 0;
        v_left := v_left - v_row.bytes;
        v_last := v_row;
    end loop;
    if v_last is not null then
        delete from agent.checkpoints c
         where c.deployment_id = p_deployment_id
           and c.thread_id = p_thread_id
           and (c.checkpoint_ns, c.checkpoint_id) <= (v_last.checkpoint_ns, v_last.checkpoint_id);
    end if;
    if v_left > 0 then
        v_left := agent.delete_records(p_deployment_id, p_thread_id, v_left);
    end if;
    if v_left <= 0 then
        return v_left;
    end if;

    delete from agent.item_sweeps w
     where w.deployment_id = p_deployment_id
       and w.thread_id = p_thread_id;
    delete from agent.inherited_items h
     where h.deployment_id = p_deployment_id
       and h.thread_id = p_thread_id;
    delete from agent.copy_lists l
     where l.deployment_id = p_deployment_id
       and l.thread_id = p_thread_id;
    delete from agent.copy_blobs q
     where q.deployment_id = p_deployment_id
       and q.thread_id = p_thread_id;
    v_last := null;
    for v_row in
        select r.run_id, 1000 + coalesce(pg_column_size(r.metadata), 0) as bytes
          from agent.copied_runs r
         where r.deployment_id = p_deployment_id
           and r.thread_id = p_thread_id
         order by r.deployment_id, r.thread_id, r.run_id
    loop
        exit when v_left <= 0;
        v_left := v_left - v_row.bytes;
        v_last := v_row;
    end loop;
    if v_last is not null then
        delete from agent.copied_runs r
         where r.deployment_id = p_deployment_id
           and r.thread_id = p_thread_id
           and r.run_id <= v_last.run_id;
    end if;
    if v_left <= 0 then
        return v_left;
    end if;

    v_last := null;
    for v_row in
        select i.list_id, i.position, 1000 + pg_column_size(i.content) as bytes
          from agent.checkpoint_items i
         where i.deployment_id = p_deployment_id
           and i.thread_id = p_thread_id
         order by i.deployment_id, i.thread_id, i.list_id, i.position
    loop
        exit when v_left <= 0;
        v_left := v_left - v_row.bytes;
        v_last := v_row;
    end loop;
    if v_last is not null then
        delete from agent.checkpoint_items i
         where i.deployment_id = p_deployment_id
           and i.thread_id = p_thread_id
           and (i.list_id, i.position) <= (v_last.list_id, v_last.position);
    end if;
    return v_left;
end
$function$;

comment on function agent.delete_state(uuid, uuid, bigint) is
    'Deletes the checkpoints and values of a thread.';
