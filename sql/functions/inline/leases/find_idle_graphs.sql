-- SPDX-License-Identifier: Apache-2.0
-- The graphs that have a ready run, and whose pool has no runner. The arrays are those of agent.claim_runs, p_free
-- that of agent.find_free_runs: pools of an account without a free run are passed over.
-- Returns: a row for each graph, two if it also has a ready quarantined run.
-- Locks:   none.
create or replace function agent.find_idle_graphs(
    p_deployment_ids uuid[],
    p_graph_ids text[],
    p_min_ready_seqs bigint[],
    p_pools integer[],
    p_limits integer[],
    p_free bigint[]
) returns table (deployment_id uuid, graph_id text)
language sql stable parallel safe
-- No SET clause: it would keep the body from being inlined into FROM.
as $function$
    select g.deployment_id, g.graph_id
      from (
            select f.*
              from agent.find_ready_graphs(
                       p_deployment_ids, p_graph_ids, p_min_ready_seqs, p_pools, p_limits, false) f
            union all
            select f.*
              from agent.find_ready_graphs(
                       p_deployment_ids, p_graph_ids, p_min_ready_seqs, p_pools, p_limits, true) f
           ) g
     where p_limits[g.pool] < 0
       -- A runner that may execute nothing need not start.
       and (p_free[g.pool] <= 0) is not true
$function$;

comment on function agent.find_idle_graphs(uuid[], text[], bigint[], integer[], integer[], bigint[]) is
    'Graphs that have a ready run, and whose pool has no runner.';
