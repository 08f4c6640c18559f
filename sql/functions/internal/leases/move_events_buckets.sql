-- SPDX-License-Identifier: Apache-2.0
-- Sets the partition of the events of runs that have waited past midnight before their first attempt: that of the day
-- of their creation may be dropped. p_rows: row ids (ctid) of queue rows.
-- Returns: nothing.
-- Locks:   the records of these runs; the caller holds the queue rows.
create or replace function agent.move_events_buckets(p_rows tid[], p_bucket date) returns void
language plpgsql volatile security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_hashjoin = off
set enable_mergejoin = off set plan_cache_mode = force_generic_plan
as $function$
begin
    update agent.runs r
       set events_bucket = p_bucket
      from agent.run_queue q
     cross join lateral (
            select x.ctid
              from agent.runs x
             where x.run_id = q.run_id
               and x.deployment_id is not distinct from q.deployment_id
             limit 1
           ) i
     where q.ctid = any (p_rows)
       and q.epoch = 0
       and q.events_bucket <> p_bucket
       and r.ctid = i.ctid;
end
$function$;

comment on function agent.move_events_buckets(tid[], date) is
    'Sets the partition of the events of runs that have waited past midnight.';
