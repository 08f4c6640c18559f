-- SPDX-License-Identifier: Apache-2.0
-- The runs and calls of a batch that have ended under these leases: the batch is repeated after an unclear commit.
-- Returns: their ids; empty for none.
-- Locks:   none.
create or replace function agent.find_ended_runs(p_worker_id bigint, p_runs agent.leased_run[]) returns uuid[]
language plpgsql stable security invoker
set search_path = '' set jit = off set enable_seqscan = off set enable_bitmapscan = off
set enable_hashjoin = off set enable_mergejoin = off set plan_cache_mode = force_generic_plan
as $function$
begin
    return array(
        select k.run_id
          from unnest(p_runs) k
         where exists (
                select
                  from agent.usage_events e
                 where e.deployment_id = k.deployment_id
                   and e.run_id = k.run_id and e.epoch = k.epoch
                   and e.worker_id = p_worker_id
                offset 0)
            or exists (
                select
                  from agent.calls x
                 where x.call_id = k.run_id and x.epoch = k.epoch
                   and x.deployment_id is not distinct from k.deployment_id
                   and x.worker_id = p_worker_id
                offset 0));
end
$function$;

comment on function agent.find_ended_runs(bigint, agent.leased_run[]) is
    'Which runs have ended under these leases.';
