-- SPDX-License-Identifier: Apache-2.0
-- Stores which graphs a worker cannot execute, because no runner of their pool starts: one element of p_deployment_ids
-- and p_graph_ids each, instead of those that it reported before.
-- Returns: those of them that no other live worker executes: their runs would wait for ever.
-- Locks:   its worker row, when they have changed.
create or replace function agent.report_failing_graphs(
    p_worker_id bigint,
    p_deployment_ids uuid[],
    p_graph_ids text[]
) returns table (deployment_id uuid, graph_id text)
language plpgsql volatile security invoker
set search_path = '' set jit = off set enable_seqscan = off
set plan_cache_mode = force_generic_plan
as $function$
#variable_conflict use_column
begin
    update agent.workers w
       set failing_deployment_ids = p_deployment_ids,
           failing_graph_ids = p_graph_ids
     where w.worker_id = p_worker_id
       and w.state <> 'dead'
       and (w.failing_deployment_ids, w.failing_graph_ids) is distinct from (p_deployment_ids, p_graph_ids);
    return query
        select f.deployment_id, f.graph_id
          from unnest(p_deployment_ids, p_graph_ids) f (deployment_id, graph_id)
         where not exists (
                select from agent.workers o
                 where o.worker_id <> p_worker_id
                   and o.state = 'live'
                   and o.lease_until > agent.now()
                   and exists (
                        select from unnest(o.deployment_ids, o.graph_ids) e (deployment_id, graph_id)
                         where e.deployment_id = f.deployment_id
                           and e.graph_id = f.graph_id)
                   and not exists (
                        select from unnest(o.failing_deployment_ids, o.failing_graph_ids) e (deployment_id, graph_id)
                         where e.deployment_id = f.deployment_id
                           and e.graph_id = f.graph_id));
end
$function$;

comment on function agent.report_failing_graphs(bigint, uuid[], text[]) is
    'Stores which graphs a worker cannot execute; those that no other one executes.';
