-- SPDX-License-Identifier: Apache-2.0
-- Deletes up to p_limit events of a run that is deleted, the oldest first; when there are more, the run is left
-- to agent.sweep_events. A run may have some hundred thousand events, 10 us each.
-- Returns: number of events deleted.
-- Locks:   the caller holds the thread, or the run's row in agent.event_sweeps.
create or replace function agent.delete_events(p_account_id uuid, p_bucket date, p_run_id uuid, p_limit integer)
returns integer
language plpgsql volatile security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_bitmapscan = off
set enable_sort = off set plan_cache_mode = force_generic_plan
as $function$
declare
    v_end     bigint;
    v_deleted integer;
begin
    select e.seq into v_end
      from agent.run_events e
     where e.account_id = p_account_id
       and e.bucket = p_bucket
       and e.run_id = p_run_id
     order by e.seq
    offset p_limit
     limit 1;
    if found then
        insert into agent.event_sweeps (account_id, bucket, run_id)
        values (p_account_id, p_bucket, p_run_id)
            on conflict do nothing;
    end if;
    delete from agent.run_events e
     where e.account_id = p_account_id
       and e.bucket = p_bucket
       and e.run_id = p_run_id
       and e.seq < coalesce(v_end, 9223372036854775807);
    get diagnostics v_deleted = row_count;
    return v_deleted;
end
$function$;

comment on function agent.delete_events(uuid, date, uuid, integer) is 'Deletes events of a deleted run.';
