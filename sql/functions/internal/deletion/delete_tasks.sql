-- SPDX-License-Identifier: Apache-2.0
-- Deletes the reports of a deleted run about tasks, until they are p_bytes or more: each row counts as its stored size
-- plus 2,000 bytes, for itself and the second index. One may be longer than p_bytes.
-- Returns: the unused part of p_bytes; null when rows are left.
-- Locks:   the caller holds the thread, or the run's row in agent.event_sweeps.
create or replace function agent.delete_tasks(p_deployment_id uuid, p_run_id uuid, p_bytes bigint)
returns bigint
language plpgsql volatile security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_sort = off
set plan_cache_mode = force_generic_plan
as $function$
declare
    v_left bigint := p_bytes;
    v_rows tid[] := '{}';
    v_row  record;
begin
    for v_row in
        select x.ctid as row_id, 2000 + pg_column_size(x.task) as bytes
          from agent.checkpoint_tasks x
         where x.run_id = p_run_id
           and x.deployment_id is not distinct from p_deployment_id
    loop
        if v_left <= 0 then
            v_left := null;
            exit;
        end if;
        v_rows := v_rows || v_row.row_id;
        v_left := v_left - v_row.bytes;
    end loop;
    delete from agent.checkpoint_tasks x
     where x.ctid = any (v_rows);
    return v_left;
end
$function$;

comment on function agent.delete_tasks(uuid, uuid, bigint) is 'Deletes the reports of a deleted run about tasks.';
