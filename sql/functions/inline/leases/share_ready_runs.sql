-- SPDX-License-Identifier: Apache-2.0
-- Divides the runs of a claim among the graphs: quarantined runs (max_shared) only, or all others. Accounts take turns,
-- run by run, then the deployments of one, the one that executes the fewest first, then its pools; the runs of one pool
-- are counted in the order in which they became ready. The parameters are those of agent.claim_runs; p_limits: of the
-- pools. p_free: how many more runs the account of each pool may execute, as agent.find_free_runs returns it.
-- Returns: a row for each graph that has a share: its number in the arrays, and the number of runs.
-- Locks:   none.
create or replace function agent.share_ready_runs(
    p_deployment_ids uuid[],
    p_graph_ids text[],
    p_min_ready_seqs bigint[],
    p_pools integer[],
    p_limits integer[],
    p_limit integer,
    p_accounts uuid[],
    p_running integer[],
    p_free bigint[],
    p_are_quarantined boolean
) returns table (graph integer, runs bigint)
language sql stable parallel safe
-- No SET clause: it would keep the body from being inlined into FROM, where p_are_quarantined is a constant that
-- selects the index.
as $function$
    select s.graph::integer, count(*)
      from (
            select a.graph
              from (
                    select d.graph, d.ready_seq, d.pool,
                           row_number() over (partition by p_accounts[d.pool] order by d.deployment_turn, d.ready_seq)
                           as turn
                      from (
                            select t.graph, t.ready_seq, t.pool,
                                   coalesce(p_running[t.pool], 0)
                                   + row_number() over (partition by t.deployment_id order by t.turn, t.ready_seq)
                                   as deployment_turn
                              from (
                                    select g.graph, g.pool, g.deployment_id, r.ready_seq,
                                           row_number() over (partition by g.pool order by r.ready_seq) as turn
                                      from unnest(p_deployment_ids, p_graph_ids, p_min_ready_seqs, p_pools)
                                           with ordinality
                                           as g (deployment_id, graph_id, min_ready_seq, pool, graph)
                                     cross join lateral (
                                            select c.ready_seq
                                              from agent.run_queue c
                                             where agent.is_claimable(c, p_are_quarantined)
                                               and c.deployment_id = g.deployment_id
                                               and c.graph_id = g.graph_id
                                               and c.ready_seq > g.min_ready_seq
                                             order by c.ready_seq
                                             limit greatest(least(p_limits[g.pool], p_free[g.pool], p_limit), 0)
                                           ) r
                                   ) t
                             where t.turn <= p_limits[t.pool]
                           ) d
                   ) a
             where a.turn <= p_free[a.pool] is not false
             order by a.turn, a.ready_seq
             limit p_limit
           ) s
     group by s.graph
$function$;

comment on function agent.share_ready_runs(
    uuid[], text[], bigint[], integer[], integer[], integer, uuid[], integer[], bigint[], boolean) is
    'Divides the runs of a claim among the graphs.';
