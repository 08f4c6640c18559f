-- SPDX-License-Identifier: Apache-2.0
-- Deletes the checkpoints, records and values of a thread that is being deleted, or of a copy that is not complete, up
-- to p_bytes as agent.find_state_rows counts them. Uses of blobs are not counted, and nothing is left for sweeps.
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
    v_name text;
    v_rows tid[] := '{}';
    v_row  record;
begin
    delete from agent.run_sweeps s
     where s.deployment_id = p_deployment_id
       and s.thread_id = p_thread_id;
    delete from agent.write_sweeps s
     where s.deployment_id = p_deployment_id
       and s.thread_id = p_thread_id;
    delete from agent.blob_sweeps s
     where s.deployment_id = p_deployment_id
       and s.thread_id = p_thread_id;
    delete from agent.item_sweeps s
     where s.deployment_id = p_deployment_id
       and s.thread_id = p_thread_id;
    delete from agent.inherited_items h
     where h.deployment_id = p_deployment_id
       and h.thread_id = p_thread_id;
    delete from agent.copy_lists l
     where l.deployment_id = p_deployment_id
       and l.thread_id = p_thread_id;
    delete from agent.copy_blobs q
     where q.deployment_id = p_deployment_id
       and q.thread_id = p_thread_id;

    for v_row in
        select x.name, x.row_id, x.bytes
          from agent.find_state_rows(p_deployment_id, p_thread_id) x
    loop
        exit when v_left <= 0;
        if v_row.name <> v_name then
            perform agent.delete_state_rows(v_name, v_rows);
            v_rows := '{}';
        end if;
        v_left := v_left - v_row.bytes;
        v_name := v_row.name;
        v_rows := v_rows || v_row.row_id;
    end loop;
    if v_name is not null then
        perform agent.delete_state_rows(v_name, v_rows);
    end if;
    return v_left;
end
$function$;

comment on function agent.delete_state(uuid, uuid, bigint) is
    'Deletes the checkpoints and values of a thread.';
