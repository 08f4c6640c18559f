-- SPDX-License-Identifier: Apache-2.0
-- The start and call messages that agent.claim_runs did not compose. Each run is the active one of its thread, so since
-- the claim only a deletion of a run can have changed the state of the thread. p_items: as in agent.release_runs.
-- Returns: one row per run that the worker still holds.
-- Locks:   none.
create or replace function agent.compose_starts(p_worker_id bigint, p_items json)
returns table (run_id uuid, epoch integer, start text)
language plpgsql stable security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_bitmapscan = off
set enable_hashjoin = off set enable_mergejoin = off set enable_sort = off
set plan_cache_mode = force_generic_plan
as $function$
begin
    return query
        select q.run_id, q.epoch, s.start
          from json_to_recordset(p_items) as i (d uuid, r uuid, e integer)
         cross join lateral agent.find_lease(p_worker_id, i.d, i.r, i.e) q
         cross join lateral agent.compose_message(
                q.deployment_id, q.run_id, q.thread_id, q.graph_id, q.epoch, q.attempts, q.op) s;
end
$function$;

comment on function agent.compose_starts(bigint, json) is
    'The start messages of claimed runs.';
