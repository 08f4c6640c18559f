-- SPDX-License-Identifier: Apache-2.0
-- The runs of a worker that were cancelled or lost, and those that are leased to it although it does not know them: the
-- result of their claim was lost, or a failover or a restored backup has undone their end or their release. Also
-- called after each reconnect: a claim does not wait for a standby and can be lost with a failover.
-- p_items: as in agent.release_runs. p_others: likewise, the leases whose end or release may not be committed; null
-- when leases that the worker does not know are not to be searched.
-- Returns: cancel: interrupt or rollback was requested; lost: the worker no longer holds the lease; unknown: the worker
--          holds it, but it is in neither list, at most 200 of them. No row for a run that continues.
-- Locks:   none.
create or replace function agent.check_leases(p_worker_id bigint, p_items json, p_others json)
returns table (deployment_id uuid, run_id uuid, epoch integer, outcome text)
language plpgsql stable security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_hashjoin = off
set enable_mergejoin = off set plan_cache_mode = force_generic_plan
as $function$
begin
    return query
        select i.d, i.r, i.e, case when q.run_id is null then 'lost' else 'cancel' end
          from json_to_recordset(p_items) as i (d uuid, r uuid, e integer)
          left join lateral agent.find_lease(p_worker_id, i.d, i.r, i.e) q on true
         where q.run_id is null
            or q.cancel is not null;

    if p_others is not null then
        return query
            select l.d, l.r, l.e, 'unknown'
              from (
                    (
                        -- By the index of leases alone, as in agent.mark_worker_dead.
                        select q.deployment_id as d, q.run_id as r, q.epoch as e
                          from agent.run_queue q
                         where q.worker_id = p_worker_id
                        offset 0
                    )
                    except
                    (
                        select i.d, i.r, i.e from json_to_recordset(p_items) as i (d uuid, r uuid, e integer)
                        union all
                        select i.d, i.r, i.e from json_to_recordset(p_others) as i (d uuid, r uuid, e integer)
                    )
                   ) l
             limit 200;
    end if;
end
$function$;

comment on function agent.check_leases(bigint, json, json) is
    'Leased runs that were cancelled or lost, or that their worker does not know.';
