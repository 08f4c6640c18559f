-- SPDX-License-Identifier: Apache-2.0
-- The runs of a worker that were cancelled or lost. Also called first after each reconnect: a claim does not
-- wait for a standby and can be lost with a failover. p_items: as in agent.release_runs.
-- Returns: cancel: interrupt or rollback was requested; lost: the worker no longer holds the lease. No row
--          for a run that continues.
-- Locks:   none.
create or replace function agent.check_leases(p_worker_id bigint, p_items json)
returns table (run_id uuid, epoch integer, outcome text)
language plpgsql stable security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_hashjoin = off
set enable_mergejoin = off set plan_cache_mode = force_generic_plan
as $function$
begin
    return query
        select i.r, i.e, case when q.run_id is null then 'lost' else 'cancel' end
          from json_to_recordset(p_items) as i (d uuid, r uuid, e integer)
          left join lateral agent.find_lease(p_worker_id, i.d, i.r, i.e) q on true
         where q.run_id is null
            or q.cancel is not null;
end
$function$;

comment on function agent.check_leases(bigint, json) is 'Leased runs that were cancelled or lost.';
