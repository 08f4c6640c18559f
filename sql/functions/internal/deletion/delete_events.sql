-- SPDX-License-Identifier: Apache-2.0
-- Deletes events of a deleted run, oldest first, until they are p_bytes or more: each counts as its stored size plus
-- 1,000 bytes for its row. One may be longer than p_bytes. A megabyte takes about 15 ms, and a run with a few
-- megabytes of state may have a gigabyte of events: agent.sweep_events deletes the rest.
-- The reports of the run about tasks are deleted before its events, unless agent.delete_run_state has deleted them.
-- Returns: the unused part of p_bytes; 0 or less when something may be left.
-- Locks:   the caller holds the thread, or the run's row in agent.event_sweeps.
create or replace function agent.delete_events(p_deployment_id uuid, p_bucket date, p_run_id uuid, p_bytes bigint)
returns bigint
language plpgsql volatile security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_bitmapscan = off
set enable_sort = off set plan_cache_mode = force_generic_plan
as $function$
declare
    v_left  bigint := agent.delete_tasks(p_deployment_id, p_run_id, p_bytes);
    v_bytes bigint := 0;
    v_seq   bigint;
    v_size  bigint;
    v_last  bigint := -1;
begin
    if v_left is null then
        insert into agent.event_sweeps (deployment_id, bucket, run_id)
        values (p_deployment_id, p_bucket, p_run_id)
            on conflict do nothing;
        return 0;
    end if;
    for v_seq, v_size in
        select e.seq, 1000 + coalesce(pg_column_size(e.data), 0)
          from agent.run_events e
         where e.deployment_id = p_deployment_id
           and e.bucket = p_bucket
           and e.run_id = p_run_id
         order by e.seq
    loop
        if v_bytes >= v_left then
            insert into agent.event_sweeps (deployment_id, bucket, run_id)
            values (p_deployment_id, p_bucket, p_run_id)
                on conflict do nothing;
            exit;
        end if;
        v_bytes := v_bytes + v_size;
        v_last := v_seq;
    end loop;
    delete from agent.run_events e
     where e.deployment_id = p_deployment_id
       and e.bucket = p_bucket
       and e.run_id = p_run_id
       and e.seq <= v_last;
    return v_left - v_bytes;
end
$function$;

comment on function agent.delete_events(uuid, date, uuid, bigint) is 'Deletes events of a deleted run.';
