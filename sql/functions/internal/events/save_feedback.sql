-- SPDX-License-Identifier: Apache-2.0
-- Inserts the last events of runs that have just become final and have feedback addresses. A function of its own,
-- because a statement that refers to run_events opens all of its partitions.
-- Returns: nothing.
-- Locks:   the new rows; the caller holds the records of the runs.
create or replace function agent.save_feedback(p_events agent.batch_event[]) returns void
language plpgsql volatile security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_hashjoin = off
set enable_mergejoin = off set plan_cache_mode = force_generic_plan
as $function$
begin
    insert into agent.run_events (deployment_id, bucket, run_id, seq, epoch, event, data)
    select f.deployment_id, r.events_bucket, f.run_id, f.seq, f.epoch, f.event, f.data
      from unnest(p_events) f
     cross join lateral (
            select x.events_bucket
              from agent.runs x
             where x.run_id = f.run_id
               and x.deployment_id is not distinct from f.deployment_id
             limit 1
           ) r;
end
$function$;

comment on function agent.save_feedback(agent.batch_event[]) is
    'Inserts the last events of runs with feedback addresses.';
