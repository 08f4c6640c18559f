-- SPDX-License-Identifier: Apache-2.0
-- The latest events of many runs, one statement for all streams that wait. The arrays name each run, its
-- deployment and its cursor. Rows without an event tell the caller to poll with agent.read_events.
-- Returns: rows in order of seq within each run. event null: poll, because the next row contains the values
--          of a checkpoint, or is large, or there are more than p_limit events, or the run is final or was deleted.
--          No row for a run without changes.
-- Bound:   of each run p_limit + 1 events of 16 KB.
--          Held by `octet_length(x.event) + octet_length(x.data) <= 16384` and `limit p_limit + 1`.
-- Locks:   none.
create or replace function agent.read_updates(
    p_deployment_ids uuid[],
    p_run_ids uuid[],
    p_afters bigint[],
    p_limit integer
) returns table (run_id uuid, seq bigint, event text, data text)
language sql stable security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_bitmapscan = off
set enable_hashjoin = off set enable_mergejoin = off set plan_cache_mode = force_generic_plan
as $function$
    select u.run_id,
           e.seq,
           case when e.is_small and e.seq - u.seq <= p_limit then e.event end,
           case when e.is_small then e.data end
      from unnest(p_deployment_ids, p_run_ids, p_afters) u (deployment_id, run_id, seq)
      join agent.runs r on r.run_id = u.run_id
       and r.deployment_id is not distinct from u.deployment_id
     cross join lateral (
            -- The length is known without fetching the value.
            select x.seq, x.event, x.data,
                   x.checkpoint_id is null and octet_length(x.event) + octet_length(x.data) <= 16384 as is_small
              from agent.run_events x
             where x.deployment_id = r.deployment_id
               and x.bucket = r.events_bucket
               and x.run_id = r.run_id
               and x.seq > u.seq
             order by x.deployment_id, x.bucket, x.run_id, x.seq
             limit p_limit + 1
           ) e
     where r.finished_at is null
    union all
    select u.run_id, null, null, null
      from unnest(p_deployment_ids, p_run_ids) u (deployment_id, run_id)
      left join agent.runs r on r.run_id = u.run_id
       and r.deployment_id is not distinct from u.deployment_id
     where r.run_id is null or r.finished_at is not null
$function$;

comment on function agent.read_updates(uuid[], uuid[], bigint[], integer) is
    'The latest events of many runs.';
