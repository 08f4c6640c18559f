-- SPDX-License-Identifier: Apache-2.0
-- The graphs that have a ready run: quarantined runs (max_shared) only, or all others; each kind has a partial index.
-- The arrays are those of agent.claim_runs; p_limits: of the pools. A pool whose limit is 0 is passed over.
-- Returns: a row for each graph.
-- Locks:   none.
create or replace function agent.find_ready_graphs(
    p_deployment_ids uuid[],
    p_graph_ids text[],
    p_min_ready_seqs bigint[],
    p_pools integer[],
    p_limits integer[],
    p_are_quarantined boolean
) returns table (deployment_id uuid, graph_id text, pool integer)
language sql stable parallel safe
-- No SET clause: it would keep the body from being inlined into FROM, where p_are_quarantined is a constant that
-- selects the index.
as $function$
    select g.deployment_id, g.graph_id, g.pool
      from unnest(p_deployment_ids, p_graph_ids, p_min_ready_seqs, p_pools)
           as g (deployment_id, graph_id, min_ready_seq, pool)
     cross join lateral (
            select
              from agent.run_queue c
             where agent.is_claimable(c, p_are_quarantined)
               and c.deployment_id = g.deployment_id
               and c.graph_id = g.graph_id
               and c.ready_seq > g.min_ready_seq
             limit least(abs(p_limits[g.pool]), 1)
           ) r
$function$;

comment on function agent.find_ready_graphs(uuid[], text[], bigint[], integer[], integer[], boolean) is
    'Graphs that have a ready run.';
