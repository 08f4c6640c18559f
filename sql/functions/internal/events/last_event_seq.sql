-- SPDX-License-Identifier: Apache-2.0
-- The number of the last event of a run. A separate function, because a statement that refers to
-- run_events opens all of its partitions, even when that part of it is seldom executed.
-- Returns: the number, -1 for none.
-- Locks:   none.
create or replace function agent.last_event_seq(
    p_deployment_id uuid,
    p_bucket date,
    p_run_id uuid
) returns bigint
language plpgsql stable security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
as $function$
begin
    return coalesce((
        select max(e.seq)
          from agent.run_events e
         where e.deployment_id = p_deployment_id
           and e.bucket = p_bucket
           and e.run_id = p_run_id), -1);
end
$function$;

comment on function agent.last_event_seq(uuid, date, uuid) is 'Number of the last event of a run.';
