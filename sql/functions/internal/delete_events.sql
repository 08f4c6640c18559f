-- SPDX-License-Identifier: Apache-2.0
-- Deletes events of a run that is deleted, the oldest first, up to p_bytes, where each counts its stored size
-- and 1,000 more, for its row: some 15 ms a megabyte. When there are more, the run is left to
-- agent.sweep_events. A run of some megabytes of state may have a gigabyte of events.
-- Returns: what is left of p_bytes.
-- Locks:   the caller holds the thread, or the run's row in agent.event_sweeps.
create or replace function agent.delete_events(p_account_id uuid, p_bucket date, p_run_id uuid, p_bytes bigint)
returns bigint
language plpgsql volatile security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_bitmapscan = off
set enable_sort = off set plan_cache_mode = force_generic_plan
as $function$
declare
    v_bytes bigint := 0;
    v_seq   bigint;
    v_size  bigint;
    v_last  bigint := -1;
begin
    for v_seq, v_size in
        select e.seq, 1000 + coalesce(pg_column_size(e.data), 0)
          from agent.run_events e
         where e.account_id = p_account_id
           and e.bucket = p_bucket
           and e.run_id = p_run_id
         order by e.seq
    loop
        if v_bytes + v_size > p_bytes then
            insert into agent.event_sweeps (account_id, bucket, run_id)
            values (p_account_id, p_bucket, p_run_id)
                on conflict do nothing;
            exit;
        end if;
        v_bytes := v_bytes + v_size;
        v_last := v_seq;
    end loop;
    delete from agent.run_events e
     where e.account_id = p_account_id
       and e.bucket = p_bucket
       and e.run_id = p_run_id
       and e.seq <= v_last;
    return p_bytes - v_bytes;
end
$function$;

comment on function agent.delete_events(uuid, date, uuid, bigint) is 'Deletes events of a deleted run.';
